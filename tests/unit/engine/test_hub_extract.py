"""`pacenote extract-drafter`: only the head's bytes, from any shard, into a head that stands alone. Or nothing."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
import pytest

from engine.checkpoint.folder import Checkpoint, open_folder
from engine.checkpoint.head import read_head
from engine.cli.main import main
from engine.errors import CheckpointError, KnownError, LoadCancelled
from engine.hub import extract
from engine.hub.connection import Connection, Patience
from engine.hub.errors import HubError
from engine.hub.extract import extract_drafter
from engine.hub.headpart import part_of
from engine.hub.hub import Hub
from tests.support import fp8_file
from tests.support.expert_layouts import as_original, per_expert
from tests.support.fake_hub import FakeHub, Fault
from tests.support.rig import load_tiny
from tests.support.tiny_pair import Shape, head_weights, write_head, write_target

REPO = "owner/model"
SHAPE = Shape(hidden_size=256, mlp=512)
"""Large enough that the shards' headers are small beside the head, as they are in real models."""
SHARDS = [f"model-0000{n}-of-00003.safetensors" for n in (1, 2, 3)]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sharded 16-bit original: the head's tensors lie in the last two shards, in HF convention, among others."""
    folder = write_target(tmp_path_factory.mktemp("original") / "model", SHAPE, bits=None)
    weights = {name: w.astype(mx.bfloat16) for name, w in mx.load(str(folder / "model.safetensors")).items()}
    weights |= {f"mtp.{n}": (w - 1 if w.ndim == 1 else w) for n, w in head_weights(SHAPE).items()}
    (folder / "model.safetensors").unlink()
    names, weight_map = sorted(weights), {}
    for number, shard in enumerate(SHARDS):
        mine = [n for n in names if number == (0 if not n.startswith("mtp.") and "layers.0" in n else 1 + (len(n) % 2))]
        mx.save_safetensors(str(folder / shard), {n: weights[n] for n in mine}, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(mine, shard)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder


@pytest.fixture
def hub(empty_hub: FakeHub, original: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    monkeypatch.setenv("HF_ENDPOINT", empty_hub.endpoint)
    empty_hub.add(REPO, original)
    return empty_hub


def connection(hub: FakeHub) -> Connection:
    return Connection(hub.endpoint, None, Patience(tries=3, first_wait=0.0, longest_wait=0.0, stall=0.3))


def test_only_the_heads_bytes_travel(hub: FakeHub, original: Path, tmp_path: Path) -> None:
    """Within 5 % of the head's size, headers, index and configuration included. And the result is that head."""
    done = extract_drafter(connection(hub), REPO, tmp_path / "head")
    head = sum(t.nbytes for n, t in open_folder(original).tensors.items() if n.startswith("mtp."))
    assert done.head_bytes == head
    assert head <= hub.sent == done.fetched <= 1.05 * head
    assert hub.sent < 0.5 * sum(len(data) for data in hub.repos[REPO].files.values())
    assert not [s for s in hub.seen if SHARDS[0] in s.path], "a shard without a part of the head is not looked at"
    config = open_folder(original).text_config
    alone, inside = read_head(open_folder(tmp_path / "head"), config), read_head(open_folder(original), config)
    assert alone.weights.keys() == inside.weights.keys()
    assert all(mx.array_equal(alone.weights[name], inside.weights[name]) for name in inside.weights)


def test_the_head_stands_alone_and_drafts(hub: FakeHub, tmp_path: Path) -> None:
    """Beside a 4-bit conversion that has no head, which is what it is for."""
    extract_drafter(connection(hub), REPO, tmp_path / "head")
    pair = load_tiny(write_target(tmp_path / "target", SHAPE), tmp_path / "head", max_block=2)
    assert pair.drafter is not None, pair.info.drafter_reason
    assert json.loads((tmp_path / "head" / "config.json").read_text())["model_type"] == "qwen3_5_mtp"


def test_revision_and_hashes_are_stated(hub: FakeHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the terminal and beside the head; each can be checked against the hub or the file."""
    assert main(["extract-drafter", REPO, "--to", str(tmp_path / "head")]) == 0
    said = capsys.readouterr().out
    source = json.loads((tmp_path / "head" / "source.json").read_text())
    assert source["repo"] == REPO
    assert source["revision"] == hub.repos[REPO].commit
    assert source["sha256"] == hashlib.sha256((tmp_path / "head" / "model.safetensors").read_bytes()).hexdigest()
    for shard in source["shards"]:
        assert shard["etag"] == hashlib.sha256(hub.repos[REPO].files[shard["name"]]).hexdigest()
    entry = open_folder_of(hub, tmp_path).tensors["mtp.fc.weight"]
    with entry.file.open("rb") as file:
        file.seek(entry.start)
        digest = hashlib.sha256(file.read(entry.nbytes)).hexdigest()
    assert source["tensors"]["mtp.fc.weight"] == digest
    assert len(source["tensors"]) == 15
    for fact in (source["revision"], source["sha256"], digest, SHARDS[1]):
        assert fact in said


def open_folder_of(hub: FakeHub, tmp_path: Path) -> Checkpoint:
    folder = tmp_path / "published"
    folder.mkdir()
    for name, data in hub.repos[REPO].files.items():
        (folder / name).write_bytes(data)
    return open_folder(folder)


def test_a_single_file_and_a_stand_alone_repo(hub: FakeHub, tmp_path: Path) -> None:
    """Without an index; and from a repo that holds nothing but a head, whose norms are not shifted again."""
    hub.add("owner/head", write_head(tmp_path / "published", SHAPE))
    done = extract_drafter(connection(hub), "owner/head", tmp_path / "head")
    ours, theirs = (mx.load(str(f / "model.safetensors")) for f in (tmp_path / "head", tmp_path / "published"))
    assert all(mx.array_equal(ours[name], theirs[name]) for name in theirs)
    assert len(done.shards) == 1


def without_a_head(files: dict[str, bytes]) -> None:
    index = json.loads(files["model.safetensors.index.json"])
    index["weight_map"] = {n: s for n, s in index["weight_map"].items() if not n.startswith("mtp.")}
    files["model.safetensors.index.json"] = json.dumps(index).encode()


def index_of_more(files: dict[str, bytes]) -> None:
    index = json.loads(files["model.safetensors.index.json"])
    index["weight_map"]["mtp.norm.bias"] = SHARDS[1]
    files["model.safetensors.index.json"] = json.dumps(index).encode()


def another_width(files: dict[str, bytes]) -> None:
    config = json.loads(files["config.json"])
    config["text_config"]["intermediate_size"] = 1024
    files["config.json"] = json.dumps(config).encode()


BROKEN: dict[str, tuple[Callable[[dict[str, bytes]], object], str]] = {
    "no head": (without_a_head, "holds no MTP head"),
    "index names a tensor that is not there": (index_of_more, "names mtp.norm.bias"),
    "the head twice": (
        lambda files: (
            files.update({"extra.safetensors": files[SHARDS[1]]}) or files.pop("model.safetensors.index.json")
        ),
        r"mtp\..* is in extra\.safetensors and again in model-",
    ),
    "no config": (lambda files: files.pop("config.json"), "has no file config.json"),
    "config is no object": (lambda files: files.update({"config.json": b"[]"}), "not a JSON object"),
    "another width": (another_width, "mlp.gate_proj.weight has shape"),
    "no safetensors": (lambda files: files.update({SHARDS[1]: b"version https://git-lfs"}), "no safetensors file"),
    "cut shard": (lambda files: files.update({SHARDS[1]: files[SHARDS[1]][:-9]}), "the file ends before"),
    "missing shard": (lambda files: files.pop(SHARDS[2]), f"has no file {SHARDS[2]}"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_repo_is_refused_before_a_tensor_is_fetched(name: str, hub: FakeHub, tmp_path: Path) -> None:
    change, words = BROKEN[name]
    change(hub.repos[REPO].files)
    with pytest.raises(KnownError, match=words) as caught:
        extract_drafter(connection(hub), REPO, tmp_path / "head")
    assert caught.value.todo
    assert list(tmp_path.iterdir()) == []
    assert hub.sent < 100_000


@pytest.mark.parametrize(
    "faults",
    [
        [Fault("GET /.*00002", cut=100, times=1)],
        [Fault("GET /.*00003", status=503), Fault("GET /.*00002", stall=9)],
        [Fault("GET /.*config.json", cut=3)],
    ],
)
def test_a_broken_transfer_goes_on(faults: list[Fault], hub: FakeHub, tmp_path: Path) -> None:
    hub.faults = faults
    done = extract_drafter(connection(hub), REPO, tmp_path / "head")
    assert all(fault.times == 0 for fault in faults)
    assert done.fetched <= 1.05 * done.head_bytes


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault("GET /.*00002", 99, whole=True), "ignores byte ranges"),
        (Fault("GET /.*00003", 99, status=403), "no access"),
        (Fault("HEAD", 99, status=404), "does not have"),
        (Fault("GET /api", 99, status=401), "needs a token"),
    ],
)
def test_a_server_that_refuses_leaves_nothing(fault: Fault, words: str, hub: FakeHub, tmp_path: Path) -> None:
    """One that ignores Range would send gigabytes for a head: it is left at the first answer."""
    hub.faults = [fault]
    with pytest.raises(KnownError, match=words):
        extract_drafter(connection(hub), REPO, tmp_path / "head")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_and_a_taken_place(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(extract.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10})())
        with pytest.raises(CheckpointError, match="MiB on this disk"):
            extract_drafter(connection(hub), REPO, tmp_path / "head")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "head").mkdir()
    (tmp_path / "head" / "mine").touch()
    hub.seen = []
    with pytest.raises(CheckpointError, match="There is something at"):
        extract_drafter(connection(hub), REPO, tmp_path / "head")
    assert hub.seen == [], "nobody was asked for what cannot be written"


def stopped(hub: FakeHub, folder: Path, at: int) -> int:
    """Pause once so many bytes of the head are there. Returns how many were kept."""
    stopping = connection(hub)
    with pytest.raises(LoadCancelled):
        extract_drafter(stopping, REPO, folder, progress=lambda done, total: done >= at and stopping.stop.set())
    assert not folder.exists()
    return int(json.loads((part_of(folder) / "kept.json").read_text())["bytes"])


def test_a_head_goes_on_where_it_stopped(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Was: a pause, a restart or a refusal threw away all of it, 849 MB of a 27B. Stops at 8 places, then the rest."""
    total, rng, kept = extract_drafter(connection(hub), REPO, tmp_path / "whole").head_bytes, random.Random(4), 0
    hub.rate = 50_000_000  # in small pieces
    for at in sorted(rng.sample(range(1, total), 8)):
        if at > kept:
            kept = stopped(hub, tmp_path / "head", at)
            assert kept >= at
    done = extract_drafter(connection(hub), REPO, tmp_path / "head")
    assert done.head_bytes == total
    assert kept > total // 2
    assert done.fetched < total - kept + 100_000, "headers, and the rest"
    same = ["model.safetensors", "config.json"]
    assert all((tmp_path / "head" / n).read_bytes() == (tmp_path / "whole" / n).read_bytes() for n in same)
    assert done.tensors == json.loads((tmp_path / "whole" / "source.json").read_text())["tensors"]
    assert not part_of(tmp_path / "head").exists()


def test_bytes_that_the_disk_may_not_have_do_not_count(hub: FakeHub, tmp_path: Path) -> None:
    """No hash tells them from others: what was written after the last note, and what the file lacks of it."""
    kept = stopped(hub, tmp_path / "head", 500_000)
    file = part_of(tmp_path / "head") / "model.safetensors"
    file.write_bytes(file.read_bytes() + b"junk")
    whole = extract_drafter(connection(hub), REPO, tmp_path / "other")
    done = extract_drafter(connection(hub), REPO, tmp_path / "head")
    assert (done.sha256, done.fetched < whole.fetched - kept // 2) == (whole.sha256, True)
    stopped(hub, tmp_path / "third", 500_000)
    with (part_of(tmp_path / "third") / "model.safetensors").open("r+b") as cut:
        cut.truncate(1000)
    assert extract_drafter(connection(hub), REPO, tmp_path / "third").sha256 == whole.sha256


def test_a_part_of_another_state_is_not_joined(hub: FakeHub, original: Path, tmp_path: Path) -> None:
    stopped(hub, tmp_path / "head", 500_000)
    hub.add(REPO, original, commit="beef" + 36 * "0")
    done = extract_drafter(connection(hub), REPO, tmp_path / "head")
    assert done.fetched >= done.head_bytes
    assert json.loads((tmp_path / "head" / "source.json").read_text())["revision"] == "beef" + 36 * "0"


def test_a_refusal_in_the_middle_says_what_is_kept_and_can_be_discarded(hub: FakeHub, tmp_path: Path) -> None:
    of = Hub(tmp_path / "heads", endpoint=hub.endpoint)
    (tmp_path / "heads").mkdir()
    assert of.discard_head(REPO) == 0

    def refuse(done: int, total: int) -> None:
        if done > 100_000:
            hub.faults = [Fault("GET ", 99, status=403)]

    with pytest.raises(HubError, match="no access") as caught:
        extract_drafter(connection(hub), REPO, of.head_folder(REPO), progress=refuse)
    assert "are kept; going on fetches only the rest" in caught.value.kept
    assert of.local(()).unusable == (), "half a head is no line of the window"
    assert of.discard_head(REPO) > 100_000
    assert list((tmp_path / "heads").iterdir()) == []


def test_the_command_discards_what_is_half_there(
    hub: FakeHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = stopped(hub, tmp_path / "head", 500_000)
    assert main(["extract-drafter", REPO, "--to", str(tmp_path / "head"), "--discard"]) == 0
    assert capsys.readouterr().out.endswith("are free again.\n")
    assert (kept >= 500_000, list(tmp_path.iterdir())) == (True, [])


def test_two_that_want_one_head_fetch_it_once(hub: FakeHub, tmp_path: Path) -> None:
    of, found = Hub(tmp_path / "heads", endpoint=hub.endpoint), []
    hub.rate = 2_000_000

    def one() -> None:
        found.append(of.extract(REPO, threading.Event(), lambda step: None))

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [of.head_folder(REPO)] * 2
    total = json.loads((of.head_folder(REPO) / "source.json").read_text())["head_bytes"]
    assert hub.sent < 1.2 * total


def test_a_head_that_is_none_is_fetched_anew_next_time(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole and wrong: what is kept of it would be refused for ever."""

    def refuse(*of: object) -> None:
        raise CheckpointError("It holds values that are no numbers.", todo="Choose another.")

    monkeypatch.setattr(extract, "read_head", refuse)
    with pytest.raises(CheckpointError, match="no numbers"):
        extract_drafter(connection(hub), REPO, tmp_path / "head")
    assert list(tmp_path.iterdir()) == []


def test_a_mixture_in_fp8_blocks_comes_out_in_16_bit(hub: FakeHub, tmp_path: Path) -> None:
    """From a model with single experts: one file, experts stacked, block scales gone, every source tensor hashed."""
    shape = Shape(experts=4, hidden_size=160, mlp=288)
    stored, _ = fp8_file.in_fp8(as_original(per_expert(head_weights(shape))))
    published = tmp_path / "published"
    published.mkdir()
    fp8_file.save(published / "model.safetensors", stored)
    config = {"model_type": shape.model_type, "text_config": shape.text_config(), **fp8_file.CONFIG}
    (published / "config.json").write_text(json.dumps(config))
    hub.add("owner/fp8", published)
    done = extract_drafter(connection(hub), "owner/fp8", tmp_path / "head")
    assert done.tensors.keys() == stored.keys()
    inside = read_head(open_folder(published), shape.text_config())
    alone = read_head(open_folder(tmp_path / "head"), shape.text_config())
    assert alone.weights.keys() == inside.weights.keys()
    assert all(mx.array_equal(alone.weights[name], w) for name, w in inside.weights.items())
    written = json.loads((tmp_path / "head" / "config.json").read_text())
    assert written["model_type"] == "qwen3_5_moe_mtp"
    assert "quantization_config" not in written
