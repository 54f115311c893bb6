"""One line of the session log <-> the engine's values. The schema in words: docs/session_log.md."""

from __future__ import annotations

import dataclasses
import re
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from engine.events import EngineInfo, Finished, Notice, PrefillProgress, ReplyStats, Round
from engine.request import Message, Request, Role, Sampler, Segment
from engine.telemetry.environment import Conditions, Environment

VERSION = 1
"""Raised when a field changes its meaning or goes away. A new field does not raise it."""

KINDS = ("header", "prefill", "round", "notice", "footer")

LATER_STATS = ("parked_ms",)
"""Figures that footers of the first releases do not have."""

_MAX_DRAFTED = 1024
"""Far above any block. A damaged number must not make the reader allocate a counter per draft."""

_MAX_NUMBER = 10**15
"""Above any count, and any time (in milliseconds 30,000 years). Larger ones overflow what is computed from them."""
_N = TypeVar("_N", int, float)

Timing = Literal["plain", "detailed"]
Row = dict[str, Any]

ROUND_FIELDS = (
    "index", "position", "width", "drafted", "accepted", "emitted", "cut",
    "draft_ms", "verify_ms", "rollback_ms", "hook_ms", "host_ms",
)  # fmt: skip
"""What the line of every round holds: numbers that say nothing of the text."""
_STATS_FIELDS = tuple(f.name for f in dataclasses.fields(ReplyStats))


def header_row(
    info: EngineInfo,
    request: Request,
    environment: Environment,
    conditions: Conditions,
    *,
    timing: Timing,
    time: datetime,
    content: bool,
) -> Row:
    """What a reader needs to judge, and with content to repeat, the generation.

    content: with the messages and stop strings. Without it a log holds no word of the chat.
    """
    model = without_home(dataclasses.asdict(info))
    asked = dataclasses.asdict(request)
    # Token ids are words of the chat as well.
    messages, stop, begun = asked.pop("messages"), asked.pop("stop"), asked.pop("begun")
    asked["messages"], asked["stops"], asked["begun"] = len(messages), len(stop), len(begun)
    row: Row = {
        "log": "pacenote",
        "version": VERSION,
        "time": time.isoformat(timespec="milliseconds"),
        "environment": dataclasses.asdict(environment),
        "conditions": dataclasses.asdict(conditions),
        "timing": timing,
        "model": model,
        "request": asked,
    }
    if content:
        row["content"] = {"messages": messages, "stop": stop, "begun": begun}
    return row


def request_from(header: Row) -> Request:
    """The request of a reply that was logged with content, to write it again from its beginning.

    What was there when the reply went on (`Request.begun`) is a part of the reply, so it is left out here.

    Raises:
        ValueError: the log holds no texts, or not such as this version writes.
    """
    asked, content = header.get("request"), header.get("content")
    if not isinstance(content, dict):
        raise ValueError("its texts were not logged")
    if not isinstance(asked, dict):
        raise ValueError("a header needs `request`")
    known = {f.name for f in dataclasses.fields(Request)} - {"messages", "stop", "begun", "sampler"}
    values = {name: asked[name] for name in known & asked.keys()}
    try:
        if not all(isinstance(text, str) for text in content["stop"]):
            raise ValueError("a stop string of its request is none")
        if not isinstance(asked.get("thinking"), bool | str | None):
            raise ValueError("its request asks for no known way of reasoning")
        sampler = {**asked["sampler"]}
        sampler["logit_bias"] = tuple((int(token), float(bias)) for token, bias in sampler.get("logit_bias", ()))
        return Request(
            messages=tuple(_message_from(message) for message in content["messages"]),
            stop=tuple(content["stop"]),
            sampler=Sampler(**sampler),
            **values,
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"its request cannot be read: {error}") from error


def _message_from(row: Row) -> Message:
    if not isinstance(row["content"], str) or not isinstance(row["reasoning"], str):
        raise ValueError("a message of its request has no text")
    if row["role"] not in get_args(Role):
        raise ValueError("a message of its request is of nobody")
    if any(s["kind"] not in ("prefill", "decode") for s in row["segments"]):
        raise ValueError("a message of its request was read in no known way")
    segments = tuple(Segment(s["kind"], _token_ids(s["tokens"])) for s in row["segments"])
    last = None if row["last_token"] is None else _token_ids([row["last_token"]])[0]
    return Message(row["role"], row["content"], row["reasoning"], segments, last)


def _token_ids(value: Any) -> tuple[int, ...]:
    """Such as any model may have; which ones this one has the engine knows."""
    if not all(isinstance(token, int) and not isinstance(token, bool) and 0 <= token < 2**31 for token in value):
        raise ValueError("a message of its request holds what is no token")
    return tuple(value)


def prefill_row(last: PrefillProgress, token: bool) -> Row:
    return {**dataclasses.asdict(last), "token": token}


def round_row(round_: Round, content: bool) -> Row:
    # Not dataclasses.asdict: it deep-copies, and this runs once per round.
    row: Row = {name: getattr(round_, name) for name in ROUND_FIELDS}
    if round_.parked:
        row["parked"] = True
    if content:
        row["tokens"] = round_.tokens
    return row


def notice_row(notice: Notice) -> Row:
    return {"about": notice.kind, "text": without_home(notice.text)}


def footer_row(finished: Finished, content: bool) -> Row:
    row: Row = {"reason": finished.reason, "seed": finished.seed, "stats": dataclasses.asdict(finished.stats)}
    if content:
        row["tokens"] = finished.tokens
        row["answer"] = finished.answer
        row["reasoning"] = finished.reasoning
    return row


def prefill_from(row: Row) -> tuple[PrefillProgress, bool]:
    """Raises ValueError for a row that this version cannot have written. So do the other `_from`."""
    last = PrefillProgress(_int(row, "done"), _int(row, "total"), _int(row, "restored"), _number(row, "seconds"))
    return last, _bool(row, "token")


def round_from(row: Row) -> Round:
    """`tokens` is () where the log holds no content."""
    values = {name: _number(row, name) if name.endswith("_ms") else _int(row, name) for name in ROUND_FIELDS}
    if not 0 <= values["drafted"] <= _MAX_DRAFTED:
        raise ValueError("`drafted` is out of range")
    tokens = _ints(row, "tokens") if "tokens" in row else ()
    parked = _bool(row, "parked") if "parked" in row else False
    return Round(**values, tokens=tokens, parked=parked)  # type: ignore[arg-type]


def notice_from(row: Row) -> Notice:
    about, text = row.get("about"), row.get("text")
    if not isinstance(about, str) or not isinstance(text, str):
        raise ValueError("a notice needs `about` and `text`")
    return Notice(about, text)  # type: ignore[arg-type]  # a newer version may know more kinds


def stats_from(row: Row) -> ReplyStats:
    stats = row.get("stats")
    if not isinstance(stats, dict):
        raise ValueError("a footer needs `stats`")
    return read_stats(stats)


def read_stats(kept: Row) -> ReplyStats:
    """The figures of a reply from its fields by name; others are ignored.

    Raises:
        ValueError: one is missing, or is none.
    """
    values: dict[str, Any] = {}
    for name in (n for n in _STATS_FIELDS if n in kept or n not in LATER_STATS):
        if name in ("accepted_at", "drafted_at"):
            values[name] = _ints(kept, name)
        else:
            values[name] = _number(kept, name) if name.endswith(("_ms", "_seconds")) else _int(kept, name)
    if len(values["accepted_at"]) != len(values["drafted_at"]):
        raise ValueError("`accepted_at` and `drafted_at` are not of one length")
    return ReplyStats(**values)


def _int(row: Row, name: str) -> int:
    value = row.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"`{name}` is not a whole number")
    return _in_range(value, name)


def _number(row: Row, name: str) -> float:
    value = row.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"`{name}` is not a number")
    return _in_range(value, name)


def _bool(row: Row, name: str) -> bool:
    value = row.get(name)
    if not isinstance(value, bool):
        raise ValueError(f"`{name}` is not true or false")
    return value


def _ints(row: Row, name: str) -> tuple[int, ...]:
    value = row.get(name)
    if not isinstance(value, list) or not all(isinstance(v, int) and not isinstance(v, bool) for v in value):
        raise ValueError(f"`{name}` is not a list of whole numbers")
    return tuple(_in_range(v, name) for v in value)


def _in_range(value: _N, name: str) -> _N:
    # What is no number at all (NaN) is in no range either.
    if not -_MAX_NUMBER <= value <= _MAX_NUMBER:
        raise ValueError(f"`{name}` is out of range")
    return value


def without_home(value: Any) -> Any:
    """The same with `~` for the home folder in every text of it: the account name is no stranger's business."""
    if isinstance(value, dict):
        return {name: without_home(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(without_home(item) for item in value)
    if not isinstance(value, str):
        return value
    home = str(Path.home()).rstrip("/")
    return re.sub(rf"(?<![\w.~-]){re.escape(home)}(?![\w.-])", "~", value) if home else value
