"""The user's token for the hub, in the system's keychain. Never in a file of ours, never in a log."""

from __future__ import annotations

from engine import KnownError

SERVICE, ACCOUNT = "Pacenote", "Hugging Face token"


class TokenStore:
    """May block, and the system may ask the user: not for the GUI thread."""

    def load(self) -> str | None:
        """The token that was kept, None where there is none or no keychain.

        Raises KnownError when the keychain does not work.
        """
        import keyring
        from keyring.errors import KeyringError

        try:
            return None if self.refusal() else keyring.get_password(SERVICE, ACCOUNT)
        except KeyringError:
            return None  # locked: the hub then asks for a token, and the window says why it was not kept
        except Exception as error:
            # Backends let through what their bus, their service or the system raise.
            raise KnownError(
                "The system's keychain cannot be read.",
                kept="Pacenote goes on without the token that it may hold.",
                todo="For a model that wants a token, enter it again, or set HF_TOKEN.",
                detail=f"{type(error).__name__}: {error}",
            ) from error

    def save(self, token: str) -> str:
        """Keep it. Returns why it could not be kept, "" when it was."""
        import keyring

        try:
            if reason := self.refusal():
                return reason
            keyring.set_password(SERVICE, ACCOUNT, token)
        except Exception as error:  # noqa: BLE001  as in `load`
            return f"the keychain refuses ({str(error) or type(error).__name__})"
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
