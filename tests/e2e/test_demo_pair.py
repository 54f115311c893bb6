"""The bundled pair: it loads, speculates, and its text does not depend on how."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from engine import Engine, EngineInfo, Finished, LoadOptions, Message, Request, Sampler, Speculation, Text, load
from engine.checkpoint.locate import DEMO

pytestmark = pytest.mark.demo
PROMPTS = json.loads((DEMO.parent / "prompts" / "check.json").read_text())


@pytest.fixture(scope="module", params=["quantized", "dense"])
def engine(request: pytest.FixtureRequest) -> Engine:
    return load(LoadOptions(quantize_drafter=request.param == "quantized"))


def finish(engine: Engine, request: Request) -> Finished:
    *_, done = engine.generate(request, threading.Event())
    assert isinstance(done, Finished)
    return done


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_tokens_equal_classic_at_every_block_size(engine: Engine, temperature: float) -> None:
    """Fewer tokens than the full run, which is `pacenote bench --check`."""
    for n, prompt in enumerate(PROMPTS[:: len(PROMPTS) // 2][:2]):
        request = Request(
            (Message("user", prompt["text"] if isinstance(prompt, dict) else prompt),), Sampler(temperature), seed=n,
            max_tokens=10, speculation=Speculation.OFF, ignore_eos=True,
        )  # fmt: skip
        classic = finish(engine, request)
        for block in (2, 3, 4, 5):
            from dataclasses import replace

            done = finish(engine, replace(request, speculation=Speculation.ALWAYS, block_size=block))
            assert done.tokens == classic.tokens, (prompt, block)
            assert done.stats.drafted > 0


def test_it_says_what_it_is(engine: Engine) -> None:
    info: EngineInfo = engine.info
    assert info.name == "Pacenote demo"
    assert 15e6 < info.parameters < 25e6
    assert info.quantization == "4-bit group 64"
    assert info.drafter is not None
    assert info.drafter.dense_bytes == 2 * json.loads((DEMO / "demo.json").read_text())["parameters"]["head"]


def test_two_turns_and_a_real_answer(engine: Engine) -> None:
    messages = [Message("user", "Hello!")]
    events = list(engine.generate(Request(tuple(messages), max_tokens=40), threading.Event()))
    done = events[-1]
    assert isinstance(done, Finished)
    assert "".join(e.text for e in events if isinstance(e, Text)) == done.reasoning + done.answer
    assert done.answer.strip()
    messages += [
        Message("assistant", done.answer, done.reasoning, done.segments, last_token=done.tokens[-1]),
        Message("user", "Who are you?"),
    ]
    second = finish(engine, Request(tuple(messages), max_tokens=30))
    assert second.stats.restored_tokens > 0


def test_it_stays_small() -> None:
    files = [p for p in Path(DEMO).rglob("*") if p.is_file()]
    assert sum(p.stat().st_size for p in files) < 24 * 2**20
