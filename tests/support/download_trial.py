"""`python -m tests.support.download_trial`: how fast and how thrifty downloads are, against a local hub.

speed: a file of 1 GB from a server limited to 100 MB/s, by curl and by us, interleaved; medians.
kills: a program that is killed at 20 random moments and started again. Three figures, each above the one before:
    what it asked for although it was on disk; what crossed the network for nothing, most of it in the system's
    buffers when the program died; what the server had handed to its own system, where the rest then was thrown away.

The server is a process of its own, so that it shares no interpreter with the client. Sizes are decimal.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import huggingface_hub
from huggingface_hub.utils import get_session

from engine.hub.connection import Connection
from engine.hub.download import download
from tests.support.fake_hub import FakeHub, FakeRepo, fake_hub, git_sha, sha256

REPO, NAME, COMMIT = "trial/model", "model.safetensors", "c0ffee" + 34 * "0"


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def serve(pipe: Pipe, size: int, rate: int) -> None:
    """Tell the endpoint and the file's URL; answer each question with (bytes written, sent, ranges asked for)."""
    with fake_hub() as hub:
        # Repeated: no generator makes a gigabyte in one go, and nobody compresses.
        block = random.Random(1).randbytes(1_000_000)
        data = block * (size // len(block))
        hub.repos[REPO] = FakeRepo(COMMIT, {NAME: data})
        hub.rate = rate
        git_sha(data)  # once and here, not while a client waits for the metadata
        pipe.send((hub.endpoint, _location(hub, data)))
        with suppress(EOFError):
            while pipe.recv():
                pipe.send((hub.written, hub.wired, [s.range for s in hub.seen if s.origin == "storage"]))


def _location(hub: FakeHub, data: bytes) -> str:
    hub.signatures += 1
    return f"{hub.storage}/{sha256(data)}/{NAME}?signature={hub.signatures}"


@contextmanager
def served(size: int, rate: int) -> Iterator[tuple[str, str, Pipe]]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(there, size, rate))
    process.start()
    there.close()
    try:
        yield (*here.recv(), here)
    finally:
        here.close()
        process.join()


def speed(size: int, rate: int, rounds: int, scratch_in: str | None) -> None:
    """Arms: curl; `download()` in a program that runs already, as the window does; the whole command."""
    huggingface_hub.HfApi()  # what a running program has imported long ago
    get_session()
    say(f"{size / 1e9:.1f} GB from a local server limited to {rate / 1e6:.0f} MB/s, {rounds} rounds, random order")
    times: dict[str, list[float]] = {"curl": [], "download()": [], "command": []}
    with served(size, rate) as (endpoint, url, _), tempfile.TemporaryDirectory(dir=scratch_in) as scratch:
        for number in range(rounds):
            for arm in random.Random(number).sample(list(times), 3):
                target = Path(scratch) / "target"
                target.mkdir()
                env = os.environ | {"HF_ENDPOINT": endpoint, "HF_HUB_CACHE": str(target)}
                started = time.perf_counter()
                if arm == "curl":
                    subprocess.run(["curl", "-s", "-o", str(target / NAME), url], check=True)
                elif arm == "command":
                    command = [sys.executable, "-m", "engine.cli", "download", REPO]
                    subprocess.run(command, env=env, check=True, capture_output=True)
                else:
                    download(Connection(endpoint), REPO, cache=target)
                times[arm].append(time.perf_counter() - started)
                assert size in {p.stat().st_size for p in target.rglob("*") if p.is_file()}
                pace = f"{size / times[arm][-1] / 1e6:6.1f} MB/s"
                say(f"  {arm:11}{times[arm][-1]:7.2f} s  {pace}  load {os.getloadavg()[0]:.1f}")
                shutil.rmtree(target)
    for arm, taken in times.items():
        ratio = [c / t for c, t in zip(times["curl"], taken, strict=True)]
        spread = f"[{min(ratio):.3f}, {max(ratio):.3f}]"
        middle = f"{statistics.median(taken):.2f} s, speed relative to curl {statistics.median(ratio):.3f}"
        say(f"median {arm}: {middle} {spread}")


def kills(size: int, rate: int, times: int, scratch_in: str | None) -> None:
    say(f"{size / 1e6:.0f} MB at {rate / 1e6:.0f} MB/s, killed (SIGKILL) at {times} random moments")
    rng = random.Random(2)
    with served(size, rate) as (endpoint, _, pipe), tempfile.TemporaryDirectory(dir=scratch_in) as scratch:
        env = os.environ | {"HF_ENDPOINT": endpoint, "HF_HUB_CACHE": scratch}
        command = [sys.executable, "-m", "engine.cli", "download", REPO]
        kept = [0]
        for goal in sorted(rng.sample(range(size // 50, size), times)):
            process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while on_disk(Path(scratch)) < max(goal, kept[-1] + 1) and process.poll() is None:
                time.sleep(0.002)
            process.kill()
            process.wait()
            kept.append(on_disk(Path(scratch)))
        subprocess.run(command, env=env, check=True, capture_output=True)
        pipe.send(True)
        written, wired, ranges = pipe.recv()
    starts = [int(asked.removeprefix("bytes=").split("-")[0]) for asked in ranges]
    again = sum(max(0, k - s) for k, s in zip(kept, starts, strict=True))
    say(f"on disk after each kill, MB: {', '.join(f'{k / 1e6:.0f}' for k in kept[1:])}")
    say(f"asked for although it was on disk: {again} bytes")
    for what, bytes_ in (("sent over the network", wired), ("handed to the server's system", written)):
        say(f"{what} beyond the file's size: {bytes_ - size} bytes, {100 * (bytes_ - size) / size:.2f} %")
    say(f"load {os.getloadavg()[0]:.1f}")


def on_disk(cache: Path) -> int:
    return sum(p.stat().st_size for p in cache.glob("models--*/blobs/*"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trial", choices=("speed", "kills"))
    parser.add_argument("--size", type=int, default=0, metavar="BYTES")
    parser.add_argument("--rate", type=int, default=100_000_000, metavar="BYTES/S")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scratch", metavar="DIR", help="where files go; one in memory leaves the disk out")
    parser.add_argument("--kills", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.trial == "speed":
        speed(arguments.size or 1_000_000_000, arguments.rate, arguments.rounds, arguments.scratch)
    else:
        kills(arguments.size or 1_000_000_000, arguments.rate, arguments.kills, arguments.scratch)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
