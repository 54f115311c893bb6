"""The table of settings. To add one, add a field here; the file and the dialog follow."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine import MAX_BLOCK, LoadOptions, Sampler, Speculation, WhenFull


class Applies(StrEnum):
    """When a change takes effect."""

    NOW = "now"
    NEXT_REPLY = "next reply"
    RELOAD = "on reload"


@dataclass(frozen=True, slots=True)
class Spec:
    """All that is known about one setting.

    choices: (stored value, label) pairs, for a setting picked from a list.
    low, high, step: bounds of a number, inclusive.
    """

    key: str
    section: str
    label: str
    default: Any
    help: str = ""
    applies: Applies = Applies.NEXT_REPLY
    choices: tuple[tuple[Any, str], ...] = ()
    low: float | None = None
    high: float | None = None
    step: float | None = None
    decimals: int = 2
    lines: bool = False

    @property
    def kind(self) -> type:
        return type(self.default)

    def _fits(self, value: Any) -> bool:
        # Not isinstance: True is an int, and 1 would pass for a switch.
        return type(value) is self.kind

    def check(self, value: Any) -> Any:
        """The value as it is stored. Raises ValueError with a reason in words."""
        if self.kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not self._fits(value):
            raise ValueError(f"must be {_NAMES[self.kind]}")
        if self.choices and value not in [stored for stored, _ in self.choices]:
            raise ValueError("must be one of " + ", ".join(str(stored) for stored, _ in self.choices))
        if self.low is not None and not value >= self.low:
            raise ValueError(f"must be at least {self.low:g}")
        if self.high is not None and not value <= self.high:
            raise ValueError(f"must be at most {self.high:g}")
        return value


_NAMES: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def _setting(default: Any, section: str, label: str, help: str = "", **more: Any) -> Any:
    return dataclasses.field(default=default, metadata={"section": section, "label": label, "help": help, **more})


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings with their defaults. Frozen: a change is a new value (`dataclasses.replace`)."""

    speculation: str = _setting(
        "on",
        "Speculation",
        "MTP speculation",
        "On parks it where it is not faster. Always never parks. Neither changes the text.",
        choices=(("on", "On"), ("off", "Off"), ("always", "Always")),
    )
    block_size: int = _setting(
        5,
        "Speculation",
        "Largest block size",
        "Most rows of a verify block: one bonus token and the drafts. The fastest of the sizes up to it is used, as "
        "measured here and now. Above 5 applies on reload.",
        low=2,
        high=MAX_BLOCK,
    )
    drafter: str = _setting(
        "auto",
        "Speculation",
        "Quantize drafter",
        "A quantized head is smaller. It can only change how many drafts are accepted, not the text. The panel says "
        "which is in force, and why. Automatic follows PACENOTE_MTP_QUANTIZE_DRAFTER, on when it is unset.",
        choices=(("auto", "Automatic"), ("quantized", "On"), ("dense", "Off")),
        applies=Applies.RELOAD,
    )
    time_stages: bool = _setting(
        True,
        "Speculation",
        "Time each stage of a round",
        "Waits after each stage, so that the panel's milliseconds are that stage's own. Free on a CPU; some speed on "
        "a GPU. Off: what drafting takes is counted under verify.",
    )
    allow_inexact: bool = _setting(
        False,
        "Speculation",
        "Allow inexact speculation",
        "Speculate although the exactness probe failed. The text may then differ from classic decode.",
        applies=Applies.RELOAD,
    )
    temperature: float = _setting(
        0.7, "Sampling", "Temperature", "0 always takes the likeliest token.", low=0.0, high=2.0, step=0.05
    )
    top_k: int = _setting(20, "Sampling", "Top-k", "0 is off.", low=0, high=1000)
    top_p: float = _setting(0.95, "Sampling", "Top-p", "1 is off.", low=0.01, high=1.0, step=0.01)
    min_p: float = _setting(0.0, "Sampling", "Min-p", "0 is off.", low=0.0, high=1.0, step=0.01)
    seed_mode: str = _setting(
        "random",
        "Sampling",
        "Seed",
        "Random draws one per reply and keeps it with the reply.",
        choices=(("random", "Random for every reply"), ("fixed", "Fixed")),
    )
    seed: int = _setting(0, "Sampling", "Fixed seed", low=0, high=2**32 - 1)
    max_tokens: int = _setting(1024, "Sampling", "Longest reply (tokens)", low=1, high=1_000_000)
    reasoning: str = _setting(
        "default",
        "Chat",
        "Reasoning",
        "For models whose template has a switch or efforts. A reply says when its model has not.",
        choices=(
            ("default", "As the model does"),
            ("off", "Off"),
            ("on", "On"),
            ("low", "Low effort"),
            ("medium", "Medium effort"),
            ("high", "High effort"),
        ),
    )
    when_full: str = _setting(
        "refuse",
        "Chat",
        "When a chat exceeds the context",
        "What is left out stays in the chat; the model does not see it, and the reply says so.",
        choices=(("refuse", "Say so and wait"), ("drop oldest turns", "Leave out its oldest turns")),
    )
    kept_memory: int = _setting(
        0,
        "Chat",
        "Memory for kept chats (MiB)",
        "Lets the next turn read only what is new. 0 takes half of what the model leaves of the working set.",
        low=0,
        high=1_000_000,
        applies=Applies.RELOAD,
    )
    keep_chat: bool = _setting(
        False,
        "Chat",
        "Keep the last chat's caches at quit",
        "The next start goes on without reading it again. A large model writes hundreds of megabytes.",
        applies=Applies.NOW,
    )
    log_text: bool = _setting(
        False,
        "Chat",
        "Words of chats in the session log",
        "The log of figures then holds prompts and replies too, so that another person can repeat them.",
        applies=Applies.NOW,
    )
    system_prompt: str = _setting("", "Chat", "System prompt", "Used by new chats.", lines=True)
    send_with: str = _setting(
        "enter",
        "Chat",
        "Send with",
        "The other one, and Shift-Enter, make a new line.",
        choices=(("enter", "Enter"), ("modified", "Cmd-Enter")),
        applies=Applies.NOW,
    )
    theme: str = _setting(
        "system",
        "Appearance",
        "Theme",
        choices=(("system", "As the system"), ("light", "Light"), ("dark", "Dark")),
        applies=Applies.NOW,
    )
    target: str = _setting(
        "",
        "Model",
        "Model folder or repo id",
        "Empty is the demo model that comes with Pacenote.",
        applies=Applies.RELOAD,
    )
    head: str = _setting(
        "",
        "Model",
        "MTP head folder or repo id",
        "Only when the head is not inside the model.",
        applies=Applies.RELOAD,
    )

    def sampler(self) -> Sampler:
        return Sampler(temperature=self.temperature, top_k=self.top_k, top_p=self.top_p, min_p=self.min_p)

    def how_to_speculate(self) -> Speculation:
        return Speculation(self.speculation)

    def how_to_reason(self) -> bool | str | None:
        return {"default": None, "off": False, "on": True}.get(self.reasoning, self.reasoning)

    def what_when_full(self) -> WhenFull:
        return WhenFull(self.when_full)

    def load_options(self) -> LoadOptions:
        quantize = {"auto": None, "quantized": True, "dense": False}[self.drafter]
        return LoadOptions(
            target=self.target or None,
            head=self.head or None,
            quantize_drafter=quantize,
            allow_inexact=self.allow_inexact,
            # Wider blocks than usual must be probed before they may be used, and that is done while loading.
            max_block=max(LoadOptions().max_block, self.block_size),
            boundary_bytes=self.kept_memory * 2**20 or None,
        )


def specs() -> tuple[Spec, ...]:
    """The table, in the order of the dialog."""
    return tuple(Spec(key=f.name, default=f.default, **f.metadata) for f in dataclasses.fields(Settings))
