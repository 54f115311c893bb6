"""What a measurement of `cost` says: its arms, what proves them, the verdict, the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from engine import LEAST_PAIRS, EngineInfo, Ratio, environment, noise_band, speed_ratio, spread

BOUND = 0.98
"""Speed with log and panel, relative to both off, that is promised."""


@dataclass(frozen=True, slots=True)
class Arm:
    name: str
    log: bool
    panel: bool


OFF = Arm("both off", log=False, panel=False)
AGAIN = Arm("both off again", log=False, panel=False)
BOTH = Arm("log and panel", log=True, panel=True)
ARMS = (OFF, AGAIN, Arm("log", log=True, panel=False), Arm("panel", log=False, panel=True), BOTH)


@dataclass(frozen=True, slots=True)
class Run:
    """lines: that the log grew by. draws: of the panel. They prove which arm ran.

    gui: processor seconds of the GUI thread. log: seconds inside the log's calls.
    """

    seconds: float
    tokens: tuple[int, ...]
    lines: int
    draws: int
    gui: float = 0.0
    log: float = 0.0


Runs = dict[str, list[Run]]


def problems(runs: Runs) -> list[str]:
    """Arms that did not do what they are called, and tokens that differ."""
    found = []
    reference = runs[OFF.name][0].tokens
    for arm in ARMS:
        if any(bool(run.lines) != arm.log for run in runs[arm.name]):
            found.append(f"{arm.name}: the log grew in the wrong arm, or did not in the right one")
        if any((run.draws > 1) != arm.panel for run in runs[arm.name]):  # one look when it is switched on or off
            found.append(f"{arm.name}: the panel was drawn in the wrong arm, or was not in the right one")
        if any(run.tokens != reference for run in runs[arm.name]):
            found.append(f"{arm.name}: other tokens")
    return found


def page(info: EngineInfo, runs: Runs, found: Sequence[str], stamp: str, warm_up: int, command: str) -> Iterator[str]:
    here, seconds = environment(), {name: [run.seconds for run in done] for name, done in runs.items()}
    tokens = len(runs[OFF.name][0].tokens) - 1
    control = speed_ratio(seconds[AGAIN.name], seconds[OFF.name])
    yield "# Cost of the session log and of the open panel"
    yield from (
        "",
        f"{info.name} on {info.device}, {date.today().isoformat()}. MLX {here.mlx}, PySide6 {here.pyside6}.",
    )
    if stamp:
        yield from ("", f"**{stamp}**")
    yield from (
        "",
        f"{tokens} tokens after the first, {len(seconds[OFF.name])} interleaved blocks in random order.",
        "",
    )
    yield (
        "| arm | tok/s: median (min - max) | speed relative to both off | lines logged | panel drawn "
        "| ms in the log's calls | ms of the GUI thread |"
    )
    yield "|---|---|---|---|---|---|---|"
    for arm in ARMS:
        rates = spread([tokens / s for s in seconds[arm.name]])
        ratio = _ratio(speed_ratio(seconds[arm.name], seconds[OFF.name])) if arm is not OFF else ""
        lines, draws = (sum(getattr(r, n) for r in runs[arm.name]) / len(runs[arm.name]) for n in ("lines", "draws"))
        rate = f"{rates.median:.1f} ({rates.minimum:.1f} - {rates.maximum:.1f})"
        own = " | ".join(f"{1e3 * spread([getattr(r, n) for r in runs[arm.name]]).median:.1f}" for n in ("log", "gui"))
        yield f"| {arm.name} | {rate} | {ratio} | {lines:.1f} | {draws:.1f} | {own} |"
    yield from ("", f"Promised: {BOUND} with both. {verdict(runs)}", "")
    yield (
        f"If every millisecond that log and panel used were taken from decoding: {_ratio(worst(runs))}. "
        "The log's calls by the clock, the GUI thread by its processor time, less that of both off in the same block."
    )
    yield ""
    yield f"A/A, both off against itself: {_ratio(control)}, so noise can fake {noise_band(control):.3f}."
    yield "Intervals: 95 % bootstrap percentiles of the median over blocks. Lines and draws are means per run: they"
    yield "prove which arm ran."
    yield from ("", *([f"- NOT PROVEN: {text}" for text in found] or ["Token ids of all runs are equal."]))
    yield from ("", "## Thrown away", "", f"- {warm_up} blocks of {len(ARMS)} runs each before the first kept one.")
    yield from ("", "## Not measured", "", "- Drawing the transcript. Other models, machines and displays. Energy.")
    yield from ("", "## Repeat", "", "```sh", command, "```")


def worst(runs: Runs) -> Ratio:
    """Speed relative to both off if all that log and panel used were taken from decoding."""
    slower = [
        off.seconds + both.log + max(0.0, both.gui - off.gui)
        for both, off in zip(runs[BOTH.name], runs[OFF.name], strict=True)
    ]
    return speed_ratio(slower, [off.seconds for off in runs[OFF.name]])


def verdict(runs: Runs) -> str:
    seconds = {name: [run.seconds for run in done] for name, done in runs.items()}
    both = speed_ratio(seconds[BOTH.name], seconds[OFF.name])
    band = noise_band(speed_ratio(seconds[AGAIN.name], seconds[OFF.name]))
    if both.high < BOUND - band:
        return "It falls short."
    if both.low >= BOUND and band <= 1.0 - BOUND:
        return "It holds: all of the interval is above."
    if band > 1.0 - BOUND:
        why = "the clock does not show it, as an arm differed from itself by more than the loss that is asked for."
    else:
        why = "the clock does not show it, as the interval reaches below."
    bound = worst(runs)
    if bound.n >= LEAST_PAIRS and bound.low >= BOUND:
        return f"It holds by what log and panel used ({_ratio(bound)} at worst); {why}"
    return f"Not shown: {why}"


def _ratio(ratio: Ratio) -> str:
    return f"{ratio.median:.4f} [{ratio.low:.4f}, {ratio.high:.4f}]"
