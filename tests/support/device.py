"""A device of planted costs, and replies on it, for tests of the pace."""

from __future__ import annotations

import random
from dataclasses import replace

from engine.events import Round
from engine.pace import Acceptance, Costs, Pace
from engine.request import Speculation

WIDTHS = (2, 3, 4, 5)


def costs(slope: float, draft: float = 1.0, read: float = 0.1) -> Costs:
    """A device where a K-row verify costs 10 ms x (1 + slope x (K - 1))."""
    return table({k: 10.0 * (1 + slope * (k - 1)) for k in (1, *WIDTHS)}, draft, draft, read)


def table(verify: dict[int, float], draft: float, hook: float, read: float = 0.1) -> Costs:
    """Rounds out of their stages."""
    rounds = {w: ms + ((w - 2) * draft + hook if w > 1 else 0.0) for w, ms in verify.items()}
    return Costs(rounds, draft, hook, read)


def round_of(width: int, accepted: int, real: Costs) -> Round:
    if width == 1:
        return Round(0, 0, 1, 0, 0, 1, 0, 0.0, real.rounds[1], 0.0, 0.0, 0.0, (0,))
    return Round(
        0, 0, width, width - 1, accepted, accepted + 1, 0, (width - 2) * real.draft, real.verify_ms(width), 0.0,
        real.hook, 0.0, (0,) * (accepted + 1),
    )  # fmt: skip


def simulate(
    pace: Pace,
    real: Costs,
    chance: float,
    tokens: int,
    seed: int = 0,
    *,
    prompt: int = 1,
    budget: int = 1000,
    limit: int = 5,
    detailed: bool = True,
    stall: float = 0.0,
    speculation: Speculation = Speculation.ON,
) -> tuple[float, list[int]]:
    """A reply on a device of these costs with a drafter that is right with `chance`. Returns (ms, widths).

    As `decode.loops` does it: the head reads late what it was told (`prompt` rows, then one per classic step); the
    first speculative round waits for that and for the classic step that was queued; the first classic step fills
    the pipeline; the last round has no accept hook. stall: share of rounds that take twenty times as long.
    """
    luck = random.Random(seed)
    spent, done, widths, waiting, queued = 0.0, 0, [], prompt, False
    pace.begin(speculation, limit, budget, waiting)
    while done < tokens:
        width = pace.width
        accepted = 0
        while accepted < width - 1 and luck.random() < chance:
            accepted += 1
        round_ = round_of(width, accepted, real)
        ended = done + accepted + 1 >= tokens
        if width > 1:
            late = waiting * real.read + real.start + (real.rounds[1] if queued else 0.0)
            hook = 0.0 if ended else real.hook
            stage = "hook_ms" if detailed else "verify_ms"
            round_ = replace(round_, hook_ms=hook)
            round_ = replace(round_, **{stage: getattr(round_, stage) + late})
        elif not queued:
            round_ = replace(round_, verify_ms=round_.verify_ms + real.fill)
        if luck.random() < stall:
            round_ = replace(round_, verify_ms=20 * round_.verify_ms)
        waiting, queued = (0, False) if width > 1 else (waiting + 1, True)
        pace.observe(round_, waiting=waiting, detailed=detailed, ended=ended)
        spent += round_.total_ms
        done += accepted + 1
        widths.append(width)
    return spent, widths


def known(chance: float) -> Acceptance:
    """Of a pair with a history."""
    return Acceptance(1000, 1000 * chance)


def demo() -> Costs:
    """As measured on two CPU cores: the head reads a row in 1.3 ms, so 400 tokens cost 14 classic steps."""
    return table({1: 38.0, 2: 51.0, 3: 65.0, 4: 79.0, 5: 97.0}, 8.0, 10.0, 1.3)


def chat(
    pace: Pace, real: Costs, *, replies: int, tokens: int, prompt: int, budget: int = 1000, chance: float = 0.9
) -> tuple[float, int]:
    """Replies of one length, each behind a prompt of its own. Returns (ms, speculative rounds)."""
    spent, rounds = 0.0, 0
    for seed in range(replies):
        reply, widths = simulate(pace, real, chance, tokens, seed, prompt=prompt, budget=budget)
        spent, rounds = spent + reply, rounds + sum(w > 1 for w in widths)
    return spent, rounds
