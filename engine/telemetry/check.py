"""Whether a logged reply is what it says: its footer from its rows, its rows with each other and with its header.

No model is needed. What only a model can tell, `pacenote verify-log` replays.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

from engine.events import EndReason, ReplyStats
from engine.request import Speculation
from engine.telemetry import schema, stats
from engine.telemetry.reader import Generation


def recompute(generation: Generation) -> ReplyStats:
    """The figures from the rows alone. Equal to the footer's, digit for digit, when nothing is missing."""
    builder = stats.StatsBuilder()
    if generation.prefill is not None:
        last, token = generation.prefill
        builder.prefill(last, token=token)
    for round_ in generation.rounds:
        builder.observe(round_)
    return builder.build()


def check(generation: Generation) -> list[str]:
    """Where the rows contradict themselves or the footer's figures. Empty when all that can be checked agrees."""
    found = [f"round {r.index}: {text}" for r in generation.rounds for text in stats.round_problems(r)]
    if not generation.complete:
        return [*found, "lines are missing, so the footer cannot be checked"]
    computed = recompute(generation)
    if not stats.identity_holds(computed):
        found.append("tokens is not 1 + accepted + rounds - cut")
    for name in (n for n in (f.name for f in dataclasses.fields(ReplyStats)) if n not in unsaid(generation)):
        ours, theirs = getattr(computed, name), getattr(generation.stats, name)
        if ours != theirs:
            found.append(f"{name}: the footer says {theirs}, the rows say {ours}")
    return found


def contradictions(generation: Generation) -> list[str]:
    """Where the lines of a complete reply do not follow each other, or are not what its header asked for."""
    return [*_order(generation), *_tokens(generation), *_request(generation), *_end(generation)]


def unsaid(generation: Generation) -> list[str]:
    """Figures that a footer of an earlier release does not hold, so that they cannot be compared."""
    said = (generation.footer or {}).get("stats", {})
    return [name for name in schema.LATER_STATS if name not in said]


def unjudged(generation: Generation) -> str:
    """Why nothing of this reply can be judged, "" when it can."""
    if generation.newer:
        return f"it is in version {generation.newer} of the format; this program knows {schema.VERSION}"
    return "" if generation.complete else "lines are missing, or claim one place"


def tokens_of(generation: Generation) -> tuple[int, ...] | None:
    """All token ids of the reply, None where they were not logged."""
    return _whole_numbers((generation.footer or {}).get("tokens"))


def _order(generation: Generation) -> Iterator[str]:
    rounds = generation.rounds
    for place, round_ in enumerate(rounds):
        if round_.index != place:
            yield f"round {round_.index} stands where round {place} belongs"
    for one, next_ in itertools.pairwise(rounds):
        if next_.position != one.position + one.emitted:
            yield f"round {next_.index} does not begin where round {one.index} ended"
    if generation.prefill is None:
        if rounds:
            yield "there are rounds, but no prompt was read"
        return
    last, token = generation.prefill
    if not 0 <= last.restored <= last.done <= last.total:
        yield "the prefill restored, read and had to read numbers of tokens that cannot be"
    if token and last.done != last.total:
        yield "the prefill gave a token before the prompt was read"
    if rounds and not token:
        yield "there are rounds, but the prefill gave no token"
    if rounds and rounds[0].position != last.total + 1:  # the prefill's own token is at last.total
        yield "the first round does not begin behind the prefill's token"


def _tokens(generation: Generation) -> Iterator[str]:
    """With content: the ids of the rounds, of the part that was begun, and of the footer."""
    content = (generation.header or {}).get("content")
    tokens, asked = tokens_of(generation), _asked(generation)
    if not isinstance(content, dict):
        if tokens is not None or any(round_.tokens for round_ in generation.rounds):
            yield "there are tokens, but the header says nothing of texts"
        return
    for name, count in (("messages", "messages"), ("stop", "stops"), ("begun", "begun")):
        if isinstance(listed := content.get(name), list) and asked.get(count) != len(listed):
            yield f"the header counts {asked.get(count)} {count} and holds {len(listed)}"
    if tokens is None:
        yield "the header holds texts, but the footer has no tokens"
        return
    if any(len(round_.tokens) != round_.emitted for round_ in generation.rounds):
        yield "a round does not hold its tokens"
    written = [token for round_ in generation.rounds for token in round_.tokens]
    if list(tokens[len(tokens) - len(written) :]) != written:
        yield "the tokens of the rounds are not the last ones of the footer"
    begun = _whole_numbers(content.get("begun")) or ()
    if tokens[: len(begun)] != begun:
        yield "the reply does not begin with what was there when it went on"
    new = generation.stats.tokens if generation.stats is not None else 0
    if len(tokens) != len(begun) + new:
        yield f"the footer holds {len(tokens)} tokens, {len(begun)} of before; it says that {new} were written"


def _request(generation: Generation) -> Iterator[str]:
    asked, model = _asked(generation), _dict(generation.header, "model")
    if isinstance(seed := asked.get("seed"), int) and seed != (generation.footer or {}).get("seed"):
        yield f"seed: the header says {seed}, the footer {(generation.footer or {}).get('seed')}"
    widths = {round_.width for round_ in generation.rounds if round_.width > 1}
    if widths and asked.get("speculation") == Speculation.OFF:
        yield "there are drafts, but speculation was off"
    if widths and model.get("drafter") is None:
        yield "there are drafts, but no drafter"
    allowed = _whole_numbers(_dict(model, "verdict").get("widths"))
    if allowed is not None and (other := widths - set(allowed)):
        yield f"blocks of {_listed(other)} rows, which the verdict does not allow"
    if isinstance(most := asked.get("block_size"), int) and (wider := {w for w in widths if w > most}):
        yield f"blocks of {_listed(wider)} rows; at most {most} were asked for"


def _end(generation: Generation) -> Iterator[str]:
    """Whether the reply ended as it says, as far as its length tells."""
    reason, figures = (generation.footer or {}).get("reason"), generation.stats
    asked, limit = _asked(generation), _dict(generation.header, "model").get("context_length")
    if reason not in list(EndReason):
        yield f"it ended by {reason!r}, which is no reason that this version knows"
    if figures is None:
        return
    most, used = asked.get("max_tokens"), figures.prompt_tokens + figures.tokens
    if isinstance(most, int):
        if figures.tokens > most:
            yield f"it has {figures.tokens} tokens; at most {most} were asked for"
        elif reason == EndReason.BUDGET and figures.tokens != most:
            yield f"it ended by its budget of {most} tokens, but has {figures.tokens}"
    if isinstance(limit, int):
        if used > limit:
            yield f"prompt and reply have {used} tokens; the model reads {limit}"
        elif reason == EndReason.CONTEXT and used != limit:
            yield f"it ended by a full context of {limit} tokens, but used {used}"
    if figures.tokens == 0 and reason != EndReason.STOPPED:
        yield "it has no token, and was not stopped"


def _asked(generation: Generation) -> dict[str, Any]:
    return _dict(generation.header, "request")


def _dict(row: dict[str, Any] | None, name: str) -> dict[str, Any]:
    value = (row or {}).get(name)
    return value if isinstance(value, dict) else {}


def _whole_numbers(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not all(isinstance(v, int) and not isinstance(v, bool) for v in value):
        return None
    return tuple(value)


def _listed(numbers: set[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
