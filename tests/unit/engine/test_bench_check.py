"""The resumable equality run, with arms that are only token lists."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.bench.arms import Arm
from engine.bench.check import judge, run_check, source_digest
from engine.bench.check_plan import Case, Plan
from engine.bench.equality import differing_ids, first_difference
from engine.bench.progress import Progress
from engine.bench.prompts import Prompt
from engine.bench.sample import Sample
from engine.decode.prefill import Interrupted
from engine.errors import KnownError

PROMPTS = [Prompt(name, name, (n,)) for n, name in enumerate("abc")]


class Counted:
    """An arm that writes the prompt's own tokens, times ten, and counts its runs."""

    def __init__(self, name: str, write: Callable[[Prompt], tuple[int, ...]] | None = None) -> None:
        self.runs = 0
        self.stop_in: int | None = None
        self._write = write or (lambda prompt: prompt.tokens * 10)
        self.arm = Arm(name, self._run, frozenset())

    def _run(self, prompt: Prompt, stop: threading.Event) -> Sample:
        self.runs += 1
        if self.runs == self.stop_in:
            stop.set()
            raise Interrupted
        return Sample(0.0, self._write(prompt), {})


def plan(*arms: Counted) -> Plan:
    names = ("temperature 0.0", "temperature 0.8")
    return Plan([Case(prompt, name, 0, tuple(a.arm for a in arms)) for prompt in PROMPTS for name in names])


def test_equal_arms_have_no_differences(tmp_path: Path) -> None:
    classic, block = Counted("classic"), Counted("block 3")
    progress = Progress(tmp_path / "p.jsonl", "k")
    assert run_check(plan(classic, block), progress, threading.Event())
    (result,) = judge(plan(classic, block), progress)
    assert (result.name, result.cells, result.tokens, result.differing) == ("block 3", 6, 60, 0)


def test_an_injected_wrong_token_is_found_with_its_place(tmp_path: Path) -> None:
    """The check itself is checked: one wrong id in one prompt is one differing id, at its position."""

    def wrong(prompt: Prompt) -> tuple[int, ...]:
        return (1, 1, 1, 9, *(1,) * 6) if prompt.name == "b" else prompt.tokens * 10

    classic, block = Counted("classic"), Counted("block 3", wrong)
    progress = Progress(tmp_path / "p.jsonl", "k")
    run_check(plan(classic, block), progress, threading.Event())
    (result,) = judge(plan(classic, block), progress)
    assert result.differing == 2  # at both temperatures
    cell, difference = result.differences[0]
    assert cell.startswith("b (")
    assert cell.endswith("), temperature 0.0, seed 0, block 3")
    assert (difference.position, difference.expected, difference.found) == (3, 1, 9)


def test_an_interrupted_run_continues_where_it_stopped(tmp_path: Path) -> None:
    """Stopped in the middle of a cell: what was finished is kept, the rest is run, nothing twice."""
    path = tmp_path / "deep" / "p.jsonl"
    classic, block = Counted("classic"), Counted("block 3")
    block.stop_in = 4
    with pytest.raises(Interrupted):
        run_check(plan(classic, block), Progress(path, "k"), threading.Event())
    assert (classic.runs, block.runs) == (4, 4)
    again = Progress(path, "k")
    assert len(again.rows) == 4 + 3
    block.stop_in = None
    assert run_check(plan(classic, block), again, threading.Event())
    assert (classic.runs, block.runs) == (6, 4 + 3)
    assert judge(plan(classic, block), again)[0].cells == 6
    assert run_check(plan(classic, block), Progress(path, "k"), threading.Event())
    assert classic.runs == 6, "a finished run is only judged again"


def test_a_cell_that_did_not_do_its_work_shows_nothing(tmp_path: Path) -> None:
    """Classic decode under the name of a block arm would be equal, and prove nothing: that is our bug."""
    idle = Counted("block 3")
    idle.arm = replace(idle.arm, moves=frozenset({"target forwards, 3 rows"}))
    with pytest.raises(RuntimeError, match="ran without target forwards, 3 rows"):
        run_check(plan(Counted("classic"), idle), Progress(tmp_path / "p.jsonl", "k"), threading.Event())


def test_stop_between_cells(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    classic = Counted("classic")
    assert not run_check(plan(classic), Progress(tmp_path / "p.jsonl", "k"), stop)
    assert classic.runs == 0


@pytest.mark.parametrize("junk", [b'{"key":"k","cell":"torn', b"\xff\xfe\n", b"[1, 2]\n", b'{"key":"k"}\n', b"\n\n"])
def test_damaged_lines_cost_themselves_only(tmp_path: Path, junk: bytes) -> None:
    """A torn last line, foreign bytes, other JSON: whole lines before and after are read, appending stays possible."""
    path = tmp_path / "p.jsonl"
    Progress(path, "k").add("one", {"tokens": [1]})
    path.write_bytes(path.read_bytes() + junk)
    torn = Progress(path, "k")
    assert torn.damaged == (1 if junk.strip() else 0)
    torn.add("two", {"tokens": [2]})
    assert Progress(path, "k").rows == {"one": {"tokens": [1]}, "two": {"tokens": [2]}}


def test_results_of_other_weights_or_versions_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    Progress(path, "old").add("one", {"tokens": [1]})
    assert Progress(path, "new").rows == {}
    assert Progress(path, "old").rows, "and they are still there"


def test_a_full_disk_is_a_known_error(tmp_path: Path) -> None:
    """Stood in for by a folder in the file's place: reading and writing say what to do."""
    progress = Progress(tmp_path / "p.jsonl", "k")
    (tmp_path / "p.jsonl").mkdir()
    with pytest.raises(KnownError, match="cannot be written"):
        progress.add("one", {})
    with pytest.raises(KnownError, match="cannot be read"):
        Progress(tmp_path / "p.jsonl", "k")


def test_lines_are_json_with_their_key(tmp_path: Path) -> None:
    """The file is documentation too: each line says what it is without the others."""
    Progress(tmp_path / "p.jsonl", "k").add("one", {"tokens": [1, 2]})
    assert json.loads((tmp_path / "p.jsonl").read_text()) == {"key": "k", "cell": "one", "tokens": [1, 2]}


def test_first_difference() -> None:
    assert first_difference([1, 2], [1, 2]) is None
    shorter = first_difference([1, 2, 3], [1, 2])
    assert shorter is not None
    assert str(shorter) == "token 3 is missing where the reference has 3"
    assert differing_ids([1, 2, 3], [1, 5]) == 2
    assert differing_ids([], []) == 0


def test_results_of_other_code_do_not_count(tmp_path: Path) -> None:
    """A changed decode loop must be checked again, a changed terminal command need not."""
    for name in ("decode/classic.py", "cli/chat.py", "pace.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    before = source_digest(tmp_path)
    (tmp_path / "cli/chat.py").write_text("x = 2\n")
    assert source_digest(tmp_path) == before
    (tmp_path / "decode/classic.py").write_text("x = 2\n")
    assert source_digest(tmp_path) != before
