"""The user's token for the hub, in the system's keychain. Never in a file of ours, never in a log."""

from __future__ import annotations

SERVICE, ACCOUNT = "Pacenote", "Hugging Face token"


class TokenStore:
    """May block, and the system may ask the user: not for the GUI thread."""

    def load(self) -> str | None:
        """The token that was kept, None where there is none or no keychain."""
        import keyring
        from keyring.errors import KeyringError

        if self.refusal():
            return None
        try:
            return keyring.get_password(SERVICE, ACCOUNT)
        except KeyringError:
            return None  # locked: the hub then asks for a token, and the window says why it was not kept

    def save(self, token: str) -> str:
        """Keep it. Returns why it could not be kept, "" when it was."""
        import keyring
        from keyring.errors import KeyringError

        if reason := self.refusal():
            return reason
        try:
            keyring.set_password(SERVICE, ACCOUNT, token)
        except KeyringError as error:
            return f"the keychain refuses ({error or type(error).__name__})"
        return ""

    def refusal(self) -> str:
        """Why nothing can be kept here, "" when it can. Stores that write plain text count as none."""
        import keyring

        backend = keyring.get_keyring()
        for part in getattr(backend, "backends", [backend]):
            module = type(part).__module__
            if module.startswith("keyring.backends.") and not module.endswith((".fail", ".null")):
                return ""
        return "this system has no keychain that can be used"
