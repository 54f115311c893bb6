"""The window as a process: killed without warning, started again, and with the real engine."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from tests.e2e.kill_moments import kill_often

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("window_process.py")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PACENOTE_HOME": str(tmp_path / "home"),
        "QT_QPA_PLATFORM": "offscreen",
        "PYTHONPATH": str(ROOT),
    }


def start(environment: dict[str, str], *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcome(environment: dict[str, str], mode: str, seconds: int = 120) -> dict[str, Any]:
    """Run a mode to its end and read its last line."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), mode],
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def line(stream: IO[str] | None) -> str:
    assert stream is not None
    text = stream.readline()
    assert text, "the window ended"
    return text


def test_kill_9_while_streaming_loses_no_message_and_at_most_half_a_second(environment: dict[str, str]) -> None:
    """Bug 25: chats were lost when the UI crashed. Right after sending, and in the text."""
    for turn, after in enumerate((0, 9)):
        process = start(environment, "script", f"question {turn}")
        assert line(process.stdout) == "asked\n"
        seen: list[tuple[float, int]] = []
        for _ in range(after):
            _, seconds, length = line(process.stdout).split()
            seen.append((float(seconds), int(length)))
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate()
        for text in rest.splitlines():
            if text.startswith("progress ") and text.count(" ") == 2:
                seen.append((float(text.split()[1]), int(text.split()[2])))
        found = outcome(environment, "look")
        user, reply = found["messages"]
        assert (user["role"], user["content"]) == ("user", f"question {turn}")
        assert reply["state"] == "interrupted"
        assert (found["integrity"], found["foreign"]) == ("ok", 0)
        assert len(found["chats"]) == turn + 1
        if seen:
            last = seen[-1][0]
            # What was on screen half a second before the last sign of life, and a little for the clock of the test.
            due = max((length for seconds, length in seen if seconds <= last - 0.6), default=0)
            assert len(reply["content"]) >= due


def test_kill_9_at_random_moments(environment: dict[str, str]) -> None:
    """Bugs 25, 26. Here three times; `python -m tests.e2e.kill_moments 50` is the long form."""
    seed = secrets.randbelow(10**6)
    kills = list(kill_often(3, seed, environment))
    assert len(kills) == 3
    assert not [kill for kill in kills if kill.problems], f"seed {seed}"


@pytest.mark.demo
def test_the_real_engine_answers_is_stopped_and_verified_in_the_window(environment: dict[str, str]) -> None:
    """The whole path: the bundled pair, loaded behind the window, speculating, with its figures on screen."""
    found = outcome(environment, "real")
    roles = [m["role"] for m in found["messages"]]
    assert roles == ["user", "assistant"] * 3
    first, second, third = found["messages"][1::2]
    for reply in (first, second):
        assert reply["state"] == "complete"
        assert reply["content"]
        assert "tok/s" in reply["caption"]
    assert second["check"].startswith("Verified: classic decode gives the same")
    assert third["state"] == "stopped"
    assert third["content"]
    went_on = found["went_on"]
    assert went_on["content"].startswith(third["content"])
    assert len(went_on["content"]) > len(third["content"])
    assert went_on["check"].startswith("Verified: classic decode gives the same"), "the two parts are one reply"
    assert found["marked"] > 0, "the rounds of the speculation view"
    assert found["badge"].split(" ")[0] in ("Exact", "Declined")
    assert found["speed"].endswith("tok/s")
    assert "None" not in found["drafter"]
    assert found["texts"][0] == found["texts"][1], "same seed, same words, with speculation or without"
    assert found["logs"] == 3
    assert found["rounds"] > 0
