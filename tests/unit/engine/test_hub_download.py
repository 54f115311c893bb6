"""Downloads against a hub that misbehaves: what arrived is kept, nothing counts unverified, all of it is said."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import huggingface_hub
import pytest
from filelock import FileLock
from huggingface_hub import snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError

from engine.checkpoint.locate import locate
from engine.cli.download import words
from engine.cli.main import main
from engine.errors import CheckpointError, LoadCancelled
from engine.hub import cache as caches
from engine.hub import plan as plans
from engine.hub import run as runs
from engine.hub import transfer
from engine.hub.cache import RepoCache
from engine.hub.connection import Connection, Patience
from engine.hub.download import discard, download
from engine.hub.errors import DiskFull, FileChanged, HubError, RangeIgnored
from engine.hub.follow import Follower
from engine.hub.hub import Hub
from engine.hub.rate import Rate, coarse_duration
from engine.hub.types import DownloadProgress, Step
from tests.support.fake_hub import FakeHub, FakeRepo, Fault, git_sha, sha256

REPO = "owner/model"
COMMIT = "c0ffee" + 34 * "0"
FIRST, SECOND = (random.Random(n).randbytes(300_000) for n in (1, 2))
FILES = {
    "config.json": b'{"model_type": "qwen3_5"}',
    "model-00001-of-00002.safetensors": SECOND,
    "model-00002-of-00002.safetensors": FIRST,
    "nested/notes.txt": b"a file in a folder",
    "model.gguf": b"weights for another program",
    ".gitattributes": b"*.safetensors filter=lfs",
}
TOTAL = sum(len(data) for name, data in FILES.items() if plans.wanted(name))
IMPATIENT = Patience(tries=2, first_wait=0.0, longest_wait=0.0, stall=30.0)
HASTY = replace(IMPATIENT, stall=0.3)
"""For servers that stall. On a busy machine one that does not may answer later than this."""
STORED = "GET .*00002-of.*safetensors$"


@pytest.fixture
def hub(empty_hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    monkeypatch.setattr(plans, "_RESERVE", 0)
    empty_hub.repos = {REPO: FakeRepo(COMMIT, dict(FILES))}
    return empty_hub


def connection(hub: FakeHub, token: str | None = None, patience: Patience = IMPATIENT) -> Connection:
    stalls = any(fault.stall is not None for fault in hub.faults)
    return Connection(hub.endpoint, token, HASTY if stalls else patience)


def place() -> RepoCache:
    return RepoCache(caches.cache_folder(), REPO)


def usable() -> bool:
    """Whether mlx-lm and this program would take the repo for a model."""
    try:
        snapshot_download(REPO, local_files_only=True)
    except LocalEntryNotFoundError:
        with pytest.raises(CheckpointError):
            locate(REPO)
        return False
    return True


def whole() -> bool:
    """Whether every file that was found is byte for byte the one of the hub."""
    folder = Path(snapshot_download(REPO, local_files_only=True))
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()} == {
        name: data for name, data in FILES.items() if plans.wanted(name)
    }


def interrupted(hub: FakeHub, at: int) -> None:
    """A download whose connection to one shard breaks for good at a byte; the other shard is whole by then."""
    hub.faults = [Fault(STORED, cut=at), Fault(STORED, times=99, status=503)]
    with pytest.raises(HubError):
        download(connection(hub), REPO, at_once=1)
    hub.faults = []


def test_the_shared_cache_holds_it_as_other_programs_do(hub: FakeHub) -> None:
    """Blobs, links and branch as `huggingface_hub` lays them out; foreign weights are not fetched."""
    seen: list[DownloadProgress] = []
    done = download(connection(hub), REPO, progress=seen.append)
    assert usable()
    assert whole()
    assert done.folder == Path(snapshot_download(REPO, local_files_only=True)) == locate(REPO)[0]
    assert (done.revision, done.size, done.fetched, done.licence) == (COMMIT, TOTAL, TOTAL, "apache-2.0")
    link = done.folder / "nested" / "notes.txt"
    assert not os.path.isabs(os.readlink(link))
    assert link.resolve() == place().blob(git_sha(FILES["nested/notes.txt"])).resolve()
    assert place().blob(sha256(FIRST)).exists()
    assert {s.path for s in hub.seen if "gguf" in s.path} == set()
    assert (seen[0].step, seen[-1].done, seen[-1].total) == (Step.LOOKING, TOTAL, TOTAL)
    assert seen[-1].files_done == seen[-1].files == 4
    info = next(iter(huggingface_hub.scan_cache_dir(caches.cache_folder()).repos))
    assert (info.repo_id, info.nb_files) == (REPO, 4)
    assert not huggingface_hub.scan_cache_dir(caches.cache_folder()).warnings


def test_huggingface_hub_itself_then_fetches_nothing(hub: FakeHub) -> None:
    """Its own download takes ours over as it is."""
    folder = download(connection(hub), REPO).folder
    hub.repos[REPO].files = {name: FILES[name] for name in FILES if plans.wanted(name)}
    hub.seen = []
    got = huggingface_hub.hf_hub_download(REPO, "model-00002-of-00002.safetensors", endpoint=hub.endpoint)
    assert Path(got).parent == folder
    assert hub.sent == 0


def test_a_second_time_fetches_nothing(hub: FakeHub) -> None:
    download(connection(hub), REPO)
    hub.seen = []
    assert download(connection(hub), REPO).fetched == 0
    assert hub.sent == 0


def test_twenty_interruptions_at_random_bytes_cost_nothing(hub: FakeHub) -> None:
    """Each run dies at a random byte, the next begins with what is on disk. Re-fetched: at most 1 %."""
    rng = random.Random(9)
    cuts = sorted(rng.sample(range(1, len(FIRST)), 20))
    for before, cut in zip([0, *cuts], cuts, strict=False):
        interrupted(hub, cut - before)
        assert place().part(sha256(FIRST)).stat().st_size == cut
        assert not usable()
    hub_before = hub.sent
    assert download(connection(hub), REPO).fetched == hub.sent - hub_before < len(FIRST) - cuts[-1] + 100
    assert whole()
    assert TOTAL <= hub.sent <= 1.01 * TOTAL


def test_pause_and_resume_lose_no_byte(hub: FakeHub) -> None:
    """Stop is a pause: the next run, a new connection, fetches exactly the rest."""
    paused = connection(hub)

    def stop(progress: DownloadProgress) -> None:
        if progress.done > len(FIRST) // 2:
            paused.stop.set()

    hub.rate = 300_000
    try:
        with pytest.raises(LoadCancelled):
            download(paused, REPO, progress=stop)
    finally:
        hub.rate = 0
    kept = sum(path.stat().st_size for path in place().folder.glob("blobs/*"))
    assert place().parts()
    assert not usable()
    assert download(connection(hub), REPO).fetched == TOTAL - kept
    assert whole()


KILLED = """
import os, sys, threading
from engine.hub import transfer
from engine.hub.connection import Connection
from engine.hub.download import download
room = [int(sys.argv[2])]
real = transfer._write
def write(file, piece):
    real(file, piece[: room[0]])
    room[0] -= len(piece)
    if room[0] <= 0:
        os.kill(os.getpid(), 9)
transfer._write = write
download(Connection(sys.argv[1]), "owner/model", at_once=1)
"""


def test_a_killed_program_loses_nothing_that_arrived(hub: FakeHub, tmp_path: Path) -> None:
    """SIGKILL in the middle of a file; the lock is free again and the bytes are there."""
    env = os.environ | {"HF_HUB_CACHE": str(tmp_path / "hub")}
    with pytest.raises(subprocess.CalledProcessError) as caught:
        subprocess.run([sys.executable, "-c", KILLED, hub.endpoint, "200000"], env=env, check=True)
    assert caught.value.returncode == -9
    kept = sum(p.stat().st_size for p in place().folder.glob("blobs/*"))
    assert kept == 200_000
    assert not usable()
    assert download(connection(hub), REPO).fetched == TOTAL - kept
    assert whole()


def gone(hub: FakeHub) -> None:
    del hub.repos[REPO]


def gated(hub: FakeHub) -> None:
    hub.repos[REPO].gated = True


def faulty(*faults: Fault) -> Callable[[FakeHub], None]:
    def prepare(hub: FakeHub) -> None:
        hub.faults = list(faults)

    return prepare


def without_ranges(hub: FakeHub) -> None:
    hub.ranges = False
    hub.faults = [Fault(STORED, times=9, cut=1000)]


@pytest.mark.parametrize(
    ("prepare", "token", "kind", "words"),
    [
        (gone, None, HubError, ("needs a token, or is not there", "HF_TOKEN")),
        (gone, "hf_good", HubError, ("does not have what was asked for", "Check the name")),
        (faulty(), "hf_bad", HubError, ("does not accept the token", "hf auth login")),
        (gated, None, HubError, ("is gated: it needs a token", "and accept; then set HF_TOKEN")),
        (gated, "hf_good", HubError, ("You have no access", "accept its licence")),
        (faulty(Fault("HEAD .*00002-of", times=9, status=404)), None, HubError, ("does not have", "Check the name")),
        (faulty(Fault(STORED, times=9, status=429)), None, HubError, ("asks to slow down", "Wait some minutes")),
        (faulty(Fault(STORED, times=9, status=502)), None, HubError, ("fault of its own", "later")),
        (faulty(Fault(STORED, times=9, status=416)), None, HubError, ("refuses bytes", "another mirror")),
        (faulty(Fault(STORED, times=9, cut=0)), None, HubError, ("does not answer", "network")),
        (faulty(Fault(STORED, times=9, stall=0)), None, HubError, ("does not answer", "network")),
        (faulty(Fault(STORED, times=9, circle=True)), None, HubError, ("circles", "HF_ENDPOINT")),
        (faulty(Fault("00002-of", times=99, etag=64 * "a")), None, FileChanged, ("changed on the hub", "Start again")),
        (faulty(Fault(STORED, times=9, flip=True)), None, HubError, ("arrived damaged twice", "proxy")),
        (faulty(Fault(STORED, times=9, more=5)), None, HubError, ("sent more", "proxy")),
        (without_ranges, None, RangeIgnored, ("ignores byte ranges", "another mirror")),
    ],
)
def test_every_refusal_says_what_to_do_and_keeps_what_is_whole(
    prepare: Callable[[FakeHub], None],
    token: str | None,
    kind: type[HubError],
    words: tuple[str, str],
    hub: FakeHub,
) -> None:
    """No case makes a model usable that is not whole; each ends in a sentence; once it is over, all goes on."""
    prepare(hub)
    with pytest.raises(kind) as caught:
        download(connection(hub, token), REPO)
    assert words[0] in caught.value.what
    assert words[1] in caught.value.todo
    assert caught.value.kept
    assert not usable()
    second = place().blob(sha256(SECOND))
    had_second = second.exists()
    hub.repos = {REPO: FakeRepo(COMMIT, dict(FILES))}
    hub.faults, hub.seen, hub.ranges = [], [], True
    download(connection(hub), REPO)
    assert whole()
    if had_second:
        assert not [s for s in hub.seen if "00001-of" in s.path.split("/")[-1]], "a finished file was fetched again"


def test_a_download_that_stopped_says_how_much_is_kept(hub: FakeHub) -> None:
    hub.faults = [Fault(STORED, cut=250_000), Fault(STORED, times=99, status=503)]
    with pytest.raises(HubError) as caught:
        download(connection(hub), REPO, at_once=1)
    assert "are kept; going on fetches only the rest" in caught.value.kept
    assert caught.value.kept.startswith("537.1 KiB of 586.0 KiB")


@pytest.mark.parametrize(
    "fault",
    [
        Fault(STORED, cut=1000),
        Fault(STORED, stall=1000),
        Fault(STORED, status=503),
        Fault(STORED, status=429, headers={"Retry-After": "60"}),
        Fault(STORED, flip=True),
        Fault(STORED, status=403),
    ],
)
def test_what_passes_is_waited_out(fault: Fault, hub: FakeHub) -> None:
    """Truncated, stalled, overloaded, damaged or expired once: nobody is bothered."""
    hub.faults = [fault]
    download(connection(hub), REPO)
    assert whole()


def test_trouble_that_is_waited_out_is_told(hub: FakeHub) -> None:
    """No silent retry: what went wrong and the wait are in the progress."""
    hub.faults = [Fault(STORED, times=1, status=503)]
    seen: list[DownloadProgress] = []
    download(connection(hub, None, Patience(tries=3, first_wait=0.5, longest_wait=0.5)), REPO, progress=seen.append)
    assert next(p.trouble for p in seen if p.trouble) == (
        "The hub has a fault of its own (HTTP 503). Trying again in 1 s."
    )
    assert whole()


def test_a_server_without_ranges_begins_a_file_anew(hub: FakeHub) -> None:
    """It costs the file's bytes again, not the download."""
    interrupted(hub, 100_000)
    hub.ranges = False
    download(connection(hub), REPO)
    assert whole()


def test_a_part_of_an_older_state_is_never_joined_with_the_new_one(hub: FakeHub) -> None:
    """The repo moved on between two runs: the changed file begins at 0, the other is not fetched again."""
    interrupted(hub, 100_000)
    hub.seen = []
    new = random.Random(3).randbytes(300_000)
    name = "model-00002-of-00002.safetensors"
    hub.repos[REPO].files[name], hub.repos[REPO].commit = new, "beef" + 36 * "0"
    done = download(connection(hub), REPO)
    assert (done.folder / name).read_bytes() == new
    assert [s.range for s in hub.seen if s.origin == "storage"] == ["bytes=0-299999"]
    assert not [s for s in hub.seen if "00001-of" in s.path.split("/")[-1] and s.sent]
    assert place().parts() == [], "the part of the older state is gone"
    assert done.revision == place().commit() == "beef" + 36 * "0"


def test_an_older_whole_state_stays_in_use_until_the_new_one_is_whole(hub: FakeHub) -> None:
    old = download(connection(hub), REPO).folder
    hub.repos[REPO].files["model-00002-of-00002.safetensors"] = random.Random(3).randbytes(300_000)
    hub.repos[REPO].commit = "beef" + 36 * "0"
    interrupted(hub, 100_000)
    assert Path(snapshot_download(REPO, local_files_only=True)) == old
    assert whole()


def test_a_damaged_part_heals_itself(hub: FakeHub) -> None:
    """Bytes that rotted on disk show in the hash; the file is fetched once more."""
    interrupted(hub, 100_000)
    part = place().part(sha256(FIRST))
    part.write_bytes(b"x" * 100_000)
    download(connection(hub), REPO)
    assert whole()


def test_a_part_that_is_too_long_begins_anew(hub: FakeHub) -> None:
    interrupted(hub, 100_000)
    place().part(sha256(FIRST)).write_bytes(b"x" * 400_000)
    download(connection(hub), REPO)
    assert whole()


def test_disk_preflight_counts_what_is_there_already(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too little room is found before the first byte; what an earlier run fetched is not asked for again."""
    monkeypatch.setattr(plans, "_RESERVE", 50_000)
    monkeypatch.setattr(plans, "free_bytes", lambda folder: 400_000)
    with pytest.raises(DiskFull) as caught:
        download(connection(hub), REPO)
    assert caught.value.missing == TOTAL + 50_000 - 400_000
    assert f"Free {caught.value.missing / 1024:.1f} KiB" in caught.value.todo
    assert hub.sent == 0
    monkeypatch.setattr(plans, "free_bytes", lambda folder: 10**12)
    interrupted(hub, 290_000)
    monkeypatch.setattr(plans, "free_bytes", lambda folder: 400_000)
    download(connection(hub), REPO)
    assert whole()


def test_a_disk_that_others_fill_meanwhile_pauses_the_download(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    room = iter([10**12])
    monkeypatch.setattr(runs, "_DISK_TICK", 0.0)
    monkeypatch.setattr(plans, "free_bytes", lambda folder: next(room, 1000))
    hub.rate = 300_000
    try:
        with pytest.raises(DiskFull):
            download(connection(hub), REPO)
    finally:
        hub.rate = 0
    assert place().parts()
    assert not usable()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_write_that_finds_the_disk_full_keeps_the_part(
    number: int, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, left = transfer._write, [150_000]

    def write(file: object, piece: bytes) -> None:
        if len(piece) > left[0]:
            real(file, piece[: left[0]])
            raise OSError(number, os.strerror(number))
        left[0] -= len(piece)
        real(file, piece)

    monkeypatch.setattr(transfer, "_write", write)
    with pytest.raises(DiskFull) as caught:
        download(connection(hub), REPO, at_once=1)
    assert "Free some space" in caught.value.todo
    kept = sum(p.stat().st_size for p in place().folder.glob("blobs/*"))
    assert kept > 0
    monkeypatch.setattr(transfer, "_write", real)
    assert download(connection(hub), REPO).fetched == TOTAL - kept
    assert whole()


def test_a_cache_that_cannot_be_written_says_so(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *args: object, **kwargs: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(HubError, match="cannot be written") as caught:
        download(connection(hub), REPO)
    assert "HF_HUB_CACHE" in caught.value.todo
    assert hub.sent == 0


def test_a_file_in_the_place_of_the_cache_is_no_crash(hub: FakeHub, tmp_path: Path) -> None:
    (tmp_path / "hub").write_text("in the way")
    with pytest.raises(HubError, match="cannot be written"):
        download(connection(hub), REPO)


def test_two_at_once_fetch_every_file_once(hub: FakeHub) -> None:
    """Two windows want the same repo: one waits for the other's files and finds them."""
    hub.rate = 1_500_000
    results: list[int] = []

    def one() -> None:
        results.append(download(connection(hub), REPO).fetched)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hub.rate = 0
    assert sum(results) == hub.sent == TOTAL
    assert whole()


def test_waiting_for_another_program_is_told(hub: FakeHub) -> None:
    """Another program holds the locks of both shards; when it dies, the download goes on by itself."""
    place().prepare()
    others = [FileLock(place().lock(sha256(data)), thread_local=False) for data in (FIRST, SECOND)]
    for lock in others:
        lock.acquire()

    def progress(step: DownloadProgress) -> None:
        if step.step is Step.WAITING:
            for lock in others:
                lock.release()

    download(connection(hub), REPO, progress=progress)
    assert not any(lock.is_locked for lock in others)
    assert whole()


def test_discard_deletes_parts_and_keeps_what_is_whole(hub: FakeHub) -> None:
    interrupted(hub, 100_000)
    assert discard(REPO) == 100_000
    assert place().parts() == []
    assert place().blob(sha256(SECOND)).exists()
    assert discard(REPO) == 0
    assert discard("owner/never-seen") == 0


def test_offline_mode_asks_nobody(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(HubError, match="offline mode is on"):
        download(connection(hub), REPO)
    assert hub.seen == []


@pytest.mark.parametrize("name", ["../outside.json", "/etc/passwd", "a/../../b", "a\\b"])
def test_no_file_leaves_its_folder(name: str, hub: FakeHub) -> None:
    hub.repos[REPO].files[name] = b"{}"
    with pytest.raises(HubError, match="would leave its folder"):
        download(connection(hub), REPO)
    assert not place().folder.exists()


def test_a_mirror_without_hashes_is_named(hub: FakeHub) -> None:
    """What could not be verified is said; sizes and ETags still hold."""
    hub.repos[REPO].hashes = False
    done = download(connection(hub), REPO)
    assert len(done.unverified) == 4
    assert whole()


def test_a_commit_or_a_branch_can_be_asked_for(hub: FakeHub) -> None:
    """A commit moves no branch."""
    download(connection(hub), REPO, COMMIT)
    assert place().commit() is None
    assert place().snapshot(COMMIT).is_dir()
    download(connection(hub), REPO, "main")
    assert place().commit() == COMMIT


def test_a_file_system_without_links_gets_the_file_itself(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """exFAT: the blob moves into its place, and is not fetched a second time."""

    def refuse(self: Path, target: str) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "symlink_to", refuse)
    folder = download(connection(hub), REPO).folder
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    assert whole()
    assert download(connection(hub), REPO).fetched == 0


def test_the_command_says_what_it_fetched(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Repo, commit, licence, bytes and how to use it; progress on stderr."""
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    assert main(["download", REPO]) == 0
    said = capsys.readouterr()
    for line in (f"revision  {COMMIT}", "licence   apache-2.0", "586.0 KiB in 4 files, 586.0 KiB fetched just now"):
        assert line in said.out
    assert "Looking at the repo" in said.err
    assert "100 %, 586.0 KiB of 586.0 KiB" in said.err


def test_the_command_fails_in_sentences_and_discards(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    interrupted(hub, 102_400)
    hub.repos[REPO].gated = True
    assert main(["models"]) == 0
    assert f"{REPO}: not whole, 100.0 KiB of unfinished files; to go on:" in capsys.readouterr().out
    assert main(["download", REPO]) == 1
    said = capsys.readouterr()
    assert "needs a token" in said.err
    assert "are kept; going on fetches only the rest" in said.err
    assert main(["download", REPO, "--discard"]) == 0
    assert "100.0 KiB are free again" in capsys.readouterr().out


def test_progress_in_words() -> None:
    step = DownloadProgress(Step.FETCHING, 2**30, 4 * 2**30, 100 * 2**20, 30.7, 1, 3)
    assert words(step) == "25 %, 1.0 GiB of 4.0 GiB, 100.0 MiB/s, about 31 s left"
    assert words(DownloadProgress(Step.WAITING, 1, 4)).endswith(
        "waiting for another program that fetches the same files"
    )
    assert [coarse_duration(s) for s in (0.2, 90, 4000, 7300)] == ["1 s", "2 min", "67 min", "2.0 h"]


def test_speed_follows_the_last_seconds_and_survives_a_step_back() -> None:
    """Exact figures from exact clocks; no speed before a second was seen."""
    rate = Rate()
    rate.note(0.0, 0)
    assert (rate.speed, rate.left(5)) == (None, None)
    for second in range(1, 30):
        rate.note(float(second), 100 * second if second < 15 else 1400 + 10 * (second - 14))
    assert rate.speed == 10.0
    assert rate.left(50) == 5.0
    rate.note(30.0, 3)
    assert rate.speed is None


@pytest.mark.parametrize("steps", [[], [1], [2**20, 2**20 + 5, 3_000_000], [3_000_000]])
def test_the_hash_that_follows_a_file_is_the_hash_of_the_file(steps: list[int], tmp_path: Path) -> None:
    """Whatever the pieces are, and however they are announced."""
    data = random.Random(5).randbytes(steps[-1] if steps else 0)
    path = tmp_path / "part"
    with path.open("w+b", buffering=0) as file, Follower(file.fileno(), hashlib.sha256()) as follower:
        at = 0
        for step in steps:
            file.write(data[at:step])
            at = step
            follower.upto(at)
        assert follower.hexdigest(threading.Event()) == hashlib.sha256(data).hexdigest()


def followed(file: BinaryIO, size: int, digest: object, stop: threading.Event) -> str:
    with Follower(file.fileno(), digest) as follower:
        follower.upto(size)
        return follower.hexdigest(stop)


def test_a_hash_that_is_not_wanted_any_more_ends(tmp_path: Path) -> None:
    """Stop answers while a long file is hashed, an error of the disk is told, and no thread is left."""
    path = tmp_path / "part"
    path.write_bytes(bytes(1000))
    stop = threading.Event()
    slow = Slow(stop)
    with path.open("rb") as file:
        with pytest.raises(OSError, match="shorter"):
            followed(file, 2000, hashlib.sha256(), stop)
        with pytest.raises(LoadCancelled):
            followed(file, 1000, slow, stop)
    assert not [t for t in threading.enumerate() if t.name == "download hash"]


class Slow:
    """A hash that takes its time; the user stops meanwhile."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def update(self, chunk: bytes) -> None:
        self._stop.set()
        threading.Event().wait(0.5)


def test_an_etag_of_a_proxys_own_does_not_stop_a_download(hub: FakeHub) -> None:
    """It is no hash, so it says nothing about the file; the hash that the hub lists does."""
    hub.faults = [Fault("HEAD .*00002-of", times=99, etag="proxy-7")]
    download(connection(hub), REPO)
    assert whole()


def test_a_proxy_of_the_environment_is_used(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host itself does not exist here; only the proxy can answer for it."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", hub.endpoint)
    monkeypatch.setenv("http_proxy", hub.endpoint)
    huggingface_hub.close_session()
    try:
        assert plans.plan(Connection("http://hub.invalid", None, IMPATIENT), REPO).total == TOTAL
    finally:
        huggingface_hub.close_session()
    assert hub.seen[0].path.startswith("http://hub.invalid/api/models/")


def test_a_token_is_tested_before_it_is_used(hub: FakeHub, tmp_path: Path) -> None:
    """A right one names its owner, a wrong one is a sentence, and neither is written anywhere."""
    of = Hub(tmp_path / "heads", endpoint=hub.endpoint)
    assert of.owner("hf_good") == "someone"
    with pytest.raises(HubError, match="does not know this token"):
        of.owner("hf_bad")
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and b"hf_" in p.read_bytes()]


def test_the_environments_token_comes_before_the_kept_one(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = Hub(tmp_path / "heads", token="hf_kept", endpoint=hub.endpoint)
    hub.tokens = {"hf_good", "hf_kept"}
    of.download(REPO, threading.Event(), lambda step: None)
    assert {s.token for s in hub.seen if s.origin == "hub"} == {"hf_kept"}
    hub.seen = []
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    of.download(REPO, threading.Event(), lambda step: None)
    assert {s.token for s in hub.seen if s.origin == "hub"} == {"hf_good"}
    hub.tokens = {"hf_good"}
