"""Stop while a model loads: answered at every stage, and within one block of the exactness probe."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from engine import LoadCancelled, LoadOptions, LoadProgress, load
from engine.exactness import cache, probe

STAGES = ("Looking at the model", "Reading weights", "Looking for the MTP head", "Checking exactness")


@pytest.mark.parametrize("stage", STAGES)
def test_stop_is_answered_at_every_stage(
    tiny_folders: tuple[Path, Path], stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe is the long one: minutes for a large model on its first load."""
    monkeypatch.setattr(cache, "recall", lambda key: None)
    monkeypatch.setattr(cache, "remember", lambda *_: pytest.fail("a cancelled probe decided something"))
    cancel, later = threading.Event(), []
    blocks = []
    compare = probe.compare
    monkeypatch.setattr(probe, "compare", lambda *args: (blocks.append(1), compare(*args))[1])

    def report(step: LoadProgress) -> None:
        if cancel.is_set():
            later.append(step.stage)
        if step.stage == stage:
            cancel.set()

    target, head = map(str, tiny_folders)
    with pytest.raises(LoadCancelled):
        load(LoadOptions(target, head), report, cancel)
    assert STAGES.index(stage) + 1 >= max((STAGES.index(s) for s in later), default=0), "at most the next stage began"
    assert blocks == []


def test_stop_inside_the_probe_ends_it_with_the_block_that_runs(
    tiny_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "recall", lambda key: None)
    cancel, blocks, compare = threading.Event(), [], probe.compare

    def watched(*args: object) -> str:
        blocks.append(1)
        if len(blocks) == 3:
            cancel.set()
        return compare(*args)

    monkeypatch.setattr(probe, "compare", watched)
    target, head = map(str, tiny_folders)
    with pytest.raises(LoadCancelled):
        load(LoadOptions(target, head), None, cancel)
    assert len(blocks) == 3


def test_a_kept_verdict_is_taken_unless_the_probe_is_asked_for_again(
    tiny_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what it finds then is kept in place of the former one."""
    target, head = map(str, tiny_folders)
    load(LoadOptions(target, head)).close()  # it is kept now, if it was not
    engine = load(LoadOptions(target, head))
    assert engine.info.verdict.cached
    engine.close()
    remembered = []
    monkeypatch.setattr(cache, "remember", lambda key, decision: remembered.append(decision))
    engine = load(LoadOptions(target, head, probe_again=True))
    assert not engine.info.verdict.cached
    assert [decision.verdict for decision in remembered] == [engine.info.verdict]
    engine.close()
