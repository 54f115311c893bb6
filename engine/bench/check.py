"""The equality run: every prompt, way to sample and arm writes the same token ids as classic decode.

It is long, so it is a list of independent cells (prompt x sampling x arm) that are finished one by one
and kept. Comparing happens afterwards, from what was kept: an interrupted run continues, and a finished one
is judged again in a second.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import engine
from engine.bench.arms import Arm
from engine.bench.check_plan import Case, Plan
from engine.bench.equality import Difference, differing_ids, first_difference
from engine.bench.progress import Progress, Row
from engine.bench.rig import Rig
from engine.bench.sample import Sample
from engine.telemetry.environment import environment

FORMAT = 1
"""Raised when cells of before must not count any more."""
_NO_TOKENS = ("cli", "bench", "telemetry", "hub")
"""Folders of the engine that have no say in which token comes next."""


@dataclass(frozen=True)
class ArmResult:
    """One arm, or another group of cells, against the reference.

    cells / tokens: compared. differing: ids that differ. acceptance: accepted / drafted, None without drafts.
    differences: (cell, first difference), for every cell that differs.
    """

    name: str
    cells: int
    tokens: int
    differing: int
    drafted: int
    accepted: int
    rounds: int
    differences: tuple[tuple[str, Difference], ...]

    @property
    def acceptance(self) -> float | None:
        return self.accepted / self.drafted if self.drafted else None

    @property
    def mean_acceptance_length(self) -> float:
        return 1.0 + self.accepted / self.rounds if self.rounds else 1.0


def run_check(
    plan: Plan,
    progress: Progress,
    stop: threading.Event,
    report: Callable[[int, str], None] = lambda done, prompt: None,
) -> bool:
    """Run the cells that are not kept yet. Returns whether all are finished; False when stopped.

    report: called before each cell with its number in the plan and the name of its prompt.

    Raises:
        Interrupted: `stop` was set in the middle of a cell. All cells before it are kept.
        RuntimeError: an arm did not run what it says.
    """
    for number, (cell, case, arm) in enumerate(plan.cells()):
        if cell in progress.rows:
            continue
        if stop.is_set():
            return False
        report(number, case.prompt.name)
        sample = arm.run(case.prompt, stop)
        if still := arm.moves - sample.counts.keys():
            raise RuntimeError(f"{cell} ran without {', '.join(sorted(still))}: equal tokens would show nothing")
        progress.add(cell, _row(sample))
    return True


def judge(plan: Plan, progress: Progress, by: Callable[[Case, Arm], str] = lambda _, arm: arm.name) -> list[ArmResult]:
    """Compare what is kept against the first arm of each case. by: the row of the table that a cell counts in."""
    found: dict[str, list[tuple[str, Row, Row]]] = {}
    for case in plan.cases:
        reference = progress.rows.get(case.cell(case.arms[0]))
        for arm in case.arms[1:]:
            pairs = found.setdefault(by(case, arm), [])
            cell = case.cell(arm)
            if reference is not None and cell in progress.rows:
                pairs.append((cell, reference, progress.rows[cell]))
    return [_compare(name, pairs) for name, pairs in found.items()]


def run_key(rig: Rig, tokens: int, seed: int) -> str:
    """Changes with anything that may change a token id or an acceptance: weights, code, versions, policy, task."""
    here, info = environment(), rig.pair.info
    heads = [(name, d.info.source, d.info.representation) for name, d in sorted(rig.drafters.items())]
    parts = (
        FORMAT, here.pacenote, source_digest(), here.mlx, here.mlx_lm, info.weights_hash, heads, info.device,
        info.policy, info.verdict.kernel, list(rig.widths), tokens, seed,
    )  # fmt: skip
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def source_digest(root: Path = Path(engine.__file__).parent) -> str:
    """Of the engine's source that decides tokens. The version number does not change with every commit."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in _NO_TOKENS:
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def _row(sample: Sample) -> Row:
    stats = sample.stats
    figures = {"drafted": stats.drafted, "accepted": stats.accepted, "rounds": stats.rounds} if stats else {}
    return {"tokens": list(sample.tokens), **figures}


def _compare(name: str, pairs: Sequence[tuple[str, Row, Row]]) -> ArmResult:
    differences = [(cell, d) for cell, a, b in pairs if (d := first_difference(a["tokens"], b["tokens"])) is not None]
    return ArmResult(
        name=name,
        cells=len(pairs),
        tokens=sum(len(a["tokens"]) for _, a, _ in pairs),
        differing=sum(differing_ids(a["tokens"], b["tokens"]) for _, a, b in pairs),
        drafted=sum(b.get("drafted", 0) for _, _, b in pairs),
        accepted=sum(b.get("accepted", 0) for _, _, b in pairs),
        rounds=sum(b.get("rounds", 0) for _, _, b in pairs),
        differences=tuple(differences),
    )
