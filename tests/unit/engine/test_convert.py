"""The offline converter: the bytes of the load-time quantization, whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten

from engine.checkpoint import write
from engine.checkpoint.convert import quantize_drafter, target_plan
from engine.checkpoint.folder import Checkpoint, open_folder
from engine.checkpoint.safetensors_header import TensorEntry
from engine.cli.main import main
from engine.errors import CheckpointError
from engine.loading import SWITCH, Pair
from engine.quantize import Plan, Scheme
from tests.support.rig import Rig, load_tiny
from tests.support.tiny_pair import Shape, write_head, write_target


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(target at 4 bit group 64, dense head whose config is silent, so 4 bit group 64)."""
    folder = tmp_path_factory.mktemp("convert")
    return write_target(folder / "target", group=64), write_head(folder / "head", agree=0.8)


@pytest.fixture(scope="module")
def converted(folders: tuple[Path, Path]) -> Path:
    folder = folders[0].parent / "converted"
    assert main(["quantize-drafter", str(folders[1]), "--target", str(folders[0]), str(folder)]) == 0
    return folder


def head_bytes(pair: Pair) -> dict[str, tuple[object, bytes]]:
    assert pair.drafter is not None
    parameters = tree_flatten(pair.drafter.head.parameters())
    return {name: (p.dtype, bytes(memoryview(mx.contiguous(p).view(mx.uint8)))) for name, p in parameters}


@pytest.mark.parametrize("compute", ["stored", "float32", "dense bfloat16"])
def test_load_time_and_offline_agree_to_the_byte(
    compute: str, folders: tuple[Path, Path], converted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal bytes of every parameter, in every policy. Switched off: dense, and so other bytes."""
    monkeypatch.setenv("PACENOTE_COMPUTE", compute)
    at_load, offline = load_tiny(folders[0], folders[1], max_block=2), load_tiny(folders[0], converted)
    dense = load_tiny(folders[0], folders[1], quantize_drafter=False, max_block=2)
    assert head_bytes(at_load) == head_bytes(offline)
    assert head_bytes(dense) != head_bytes(at_load)
    assert at_load.drafter is not None
    assert offline.drafter is not None
    assert dense.drafter is not None
    assert (at_load.drafter.info.decided_by, offline.drafter.info.decided_by) == ("default", "checkpoint")
    assert at_load.drafter.info.representation == offline.drafter.info.representation
    assert at_load.drafter.info.dense_bytes == offline.drafter.info.dense_bytes
    assert dense.drafter.info.representation.startswith("dense")


def test_equal_drafts_equal_acceptance_and_one_text(folders: tuple[Path, Path], converted: Path) -> None:
    """Load-time against offline: equal drafts out of equal bytes. The text of all three, and of classic, is one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PACENOTE_COMPUTE", "float32")
        pairs = [
            load_tiny(folders[0], folders[1], max_block=2),
            load_tiny(folders[0], converted, max_block=2),
            load_tiny(folders[0], folders[1], quantize_drafter=False, max_block=2),
        ]
    rigs, drafted = [], []
    for pair in pairs:
        assert pair.drafter is not None
        rig, seen = Rig(pair.target, pair.drafter, length=60), []
        original = pair.drafter.choose

        def spy(hidden: mx.array, *rest: object, original: Callable = original, seen: list = seen) -> mx.array:
            chosen = original(hidden, *rest)
            seen.append((chosen.item(), bytes(memoryview(mx.contiguous(hidden).view(mx.uint8)))))
            return chosen

        pair.drafter.choose = spy  # type: ignore[method-assign]
        rigs.append(rig)
        drafted.append(seen)
    for prompt in ([5, 9, 200, 7], list(range(40))):
        at_load, offline, dense = (rig.speculative(prompt, 4) for rig in rigs)
        assert at_load.tokens == offline.tokens == dense.tokens == rigs[0].classic(prompt).tokens
        assert (at_load.drafted, at_load.accepted) == (offline.drafted, offline.accepted)
        assert at_load.accepted > 0
    assert drafted[0] == drafted[1]
    assert drafted[0] != drafted[2], "or the switch is not seen here"


@pytest.mark.parametrize("switch", ["0", "1", None])
def test_a_converted_head_is_not_touched_by_the_switch(
    switch: str | None, folders: tuple[Path, Path], converted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACENOTE_COMPUTE", "stored")
    usual = load_tiny(folders[0], converted, max_block=2)
    monkeypatch.setenv(SWITCH, switch) if switch else monkeypatch.delenv(SWITCH, raising=False)
    for asked in (None, True, False):
        pair = load_tiny(folders[0], converted, quantize_drafter=asked, max_block=2)
        assert head_bytes(pair) == head_bytes(usual)
        assert pair.drafter is not None
        assert pair.drafter.info == usual.drafter.info  # type: ignore[union-attr]


def test_the_configuration_makes_the_round_trip(folders: tuple[Path, Path], converted: Path, tmp_path: Path) -> None:
    """Every key of the source is there, unknown ones too; only the scheme is new."""
    before, after = (json.loads((f / "config.json").read_text()) for f in (folders[1], converted))
    assert after.pop("quantization") == {"group_size": 64, "bits": 4, "mode": "affine"}
    assert after == before
    head = open_folder(write_head(tmp_path / "head", Shape(extra={"a_key_of_the_future": [1, {"x": None}]})))
    quantize_drafter(head, open_folder(folders[0]), tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["text_config"]["a_key_of_the_future"] == [
        1,
        {"x": None},
    ]


def test_a_head_inside_a_target_becomes_a_stand_alone_one(
    folders: tuple[Path, Path], converted: Path, tmp_path: Path
) -> None:
    """Norms are stored as used, and the type says it is a head: the shift must not be done again at load."""
    inside = shutil.copytree(folders[0], tmp_path / "target")
    head = mx.load(str(folders[1] / "model.safetensors"))
    target = mx.load(str(inside / "model.safetensors"))
    stored = {f"mtp.{n}": (w - 1 if w.ndim == 1 else w) for n, w in head.items()}
    mx.save_safetensors(str(inside / "model.safetensors"), {**target, **stored})
    quantize_drafter(open_folder(inside), open_folder(folders[0]), tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["model_type"] == "qwen3_5_mtp"
    out, reference = (mx.load(str(f / "model.safetensors")) for f in (tmp_path / "out", converted))
    assert out.keys() == reference.keys()
    assert all(mx.array_equal(out[name], reference[name]) for name in out)


def mixed_target(folder: Path) -> Checkpoint:
    """4 bit group 64 by default; the last full-attention layer has v_proj at 6 bit and o_proj dense."""
    checkpoint = open_folder(folder)
    layer = "language_model.model.layers"
    block = {
        "group_size": 64,
        "bits": 4,
        f"{layer}.2.mlp.down_proj": {"group_size": 64, "bits": 8},
        f"{layer}.3.mlp.down_proj": {"group_size": 32, "bits": 5},
        f"{layer}.3.self_attn.v_proj": {"group_size": 64, "bits": 6},
        f"{layer}.3.self_attn.o_proj": False,
    }
    return Checkpoint(checkpoint.path, {**checkpoint.config, "quantization": block}, checkpoint.tensors)


def test_of_a_mixed_target_each_projection_takes_the_scheme_of_its_namesake(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    """In the last layer that has one. `fc` has none and takes the default. The result loads and says what it is."""
    target = mixed_target(folders[0])
    assert target_plan(target) == Plan(
        Scheme(64, 4),
        {
            "layers.0.self_attn.v_proj": Scheme(64, 6),
            "layers.0.self_attn.o_proj": None,
            "layers.0.mlp.down_proj": Scheme(32, 5),
        },
    )
    done = quantize_drafter(open_folder(folders[1]), target, tmp_path / "mixed")
    assert done.skipped == (("layers.0.self_attn.o_proj", "the scheme keeps it dense"),)
    pair = load_tiny(folders[0], tmp_path / "mixed", max_block=2)
    assert pair.drafter is not None
    assert pair.drafter.info.representation.startswith("4-bit group 64, ")
    written = mx.load(str(tmp_path / "mixed" / "model.safetensors"))
    assert written["layers.0.self_attn.v_proj.weight"].shape[-1] == 64 * 6 // 32
    assert written["layers.0.self_attn.o_proj.weight"].dtype == mx.bfloat16
    assert Plan.from_block(open_folder(tmp_path / "mixed").quantization()) == done.plan


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (None, "is not quantized"),
        ({"group_size": 32, "bits": 4, "mode": "mxfp4"}, r"mode mxfp4 \(by default\)"),
        (
            {"group_size": 64, "bits": 4, "language_model.model.layers.3.mlp.up_proj": {"bits": 8, "mode": "mxfp8"}},
            r"mode mxfp8 \(layers.0.mlp.up_proj\)",
        ),
        ({"group_size": 64, "bits": 7}, "cannot be quantized as its target is"),
        ({"group_size": 48, "bits": 4}, "No projection of the head can be quantized at 4-bit group 48"),
    ],
)
def test_other_schemes_are_refused_with_the_reason(
    block: dict | None, words: str, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    target = open_folder(folders[0])
    config = {**target.config, "quantization": block}
    with pytest.raises(CheckpointError, match=words) as caught:
        quantize_drafter(
            open_folder(folders[1]), Checkpoint(target.path, config, target.tensors), tmp_path / "new" / "out"
        )
    assert caught.value.todo
    assert not (tmp_path / "new").exists(), "nothing was written"


def test_a_quantized_head_and_a_taken_place_are_refused(
    folders: tuple[Path, Path], converted: Path, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match="quantized already"):
        quantize_drafter(open_folder(converted), open_folder(folders[0]), tmp_path / "out")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("precious")
    with pytest.raises(CheckpointError, match="There is something at"):
        quantize_drafter(open_folder(folders[1]), open_folder(folders[0]), tmp_path / "taken")
    assert (tmp_path / "taken" / "mine.txt").read_text() == "precious"
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_a_head_of_another_model_is_refused_and_it_says_that_nothing_was_written(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    other = open_folder(write_head(tmp_path / "other", Shape(hidden_size=96)))
    with pytest.raises(CheckpointError, match="this model needs") as caught:
        quantize_drafter(other, open_folder(folders[0]), tmp_path / "out")
    assert caught.value.kept == "Nothing was written."


def test_a_kill_at_any_step_leaves_no_half_checkpoint(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """SIGKILL before each operation on the folder: what lies there is nothing, or everything. Leftovers go."""
    folder = tmp_path / "out" / "head"
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.killed_steps", str(folders[1]), str(folders[0]), str(folder)],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *killed, last = json.loads(done.stdout)
    whole = ["config.json", "model.safetensors"]
    assert {"os.mkdir", "open", "os.rename"} <= {result["step"] for result in killed}
    assert len(killed) >= 6
    assert all(result["found"] in (None, whole) for result in killed)
    assert any(result["left"] for result in killed), "or no kill came in the middle"
    assert last == {"step": "", "found": whole, "left": 0}


@pytest.mark.parametrize("step", ["mkdir", "write_text", "rename", "fsync", "save"])
def test_a_disk_that_refuses_leaves_nothing(
    step: str, folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    def mlx_says(*_: object, **__: object) -> None:
        raise RuntimeError("[save_safetensors] Failed to write")

    if step == "save":
        monkeypatch.setattr(write.mx, "save_safetensors", mlx_says)
    elif step == "fsync":
        monkeypatch.setattr(write, "_sync", full)
    else:
        monkeypatch.setattr(*((os, step) if step == "rename" else (Path, step)), full)
    with pytest.raises(CheckpointError, match="cannot be written") as caught:
        quantize_drafter(open_folder(folders[1]), open_folder(folders[0]), tmp_path / "out")
    assert caught.value.kept
    assert caught.value.todo
    assert list(tmp_path.iterdir()) == []


def test_two_runs_at_once_do_not_clear_each_other_away(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """Nor does a leftover of a process that had the number of this one stand in the way, as it may in a container."""
    alive, namesake = (tmp_path / f".out.{number}.00aa.partial" for number in (os.getppid(), os.getpid()))
    alive.mkdir()
    namesake.mkdir()
    quantize_drafter(open_folder(folders[1]), open_folder(folders[0]), tmp_path / "out")
    assert alive.exists()
    assert open_folder(tmp_path / "out").tensors


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a**b", None),
        ("a[b]", None),
        (".", "There is something at"),
        ("link", "There is something at"),
        ("x" * 300, "cannot be written"),
        ("closed/head", "Permission denied"),
    ],
)
def test_any_place_is_written_whole_or_refused_in_words(
    name: str, words: str | None, folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These ended in a traceback: no name, a name that is a pattern or too long, a parent that nobody may enter."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    before = set() if name == "." else {"link"}
    for link in before:
        Path(link).symlink_to("nowhere")
    really = Path.is_dir

    def is_dir(path: Path) -> bool:  # tests may run as root, whom nothing stops
        if path.parent.name == "closed":
            raise PermissionError(13, "Permission denied")
        return really(path)

    monkeypatch.setattr(Path, "is_dir", is_dir)
    with pytest.raises(CheckpointError, match=words) if words else contextlib.nullcontext():
        quantize_drafter(open_folder(folders[1]), open_folder(folders[0]), Path(name))
    assert {p.name for p in place.iterdir()} == before | (set() if words else {name})
    assert [p.name for p in tmp_path.iterdir()] == ["here"]


def test_a_full_disk_is_called_full_although_mlx_does_not_say_so(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(path: str, *_: object, **__: object) -> None:
        Path(path).write_bytes(b"half")
        raise RuntimeError("[write] Unable to write 170935 bytes to file.")

    monkeypatch.setattr(write.mx, "save_safetensors", cut)
    for free, words in ((10, r"the disk is full\."), (2**40, r"Unable to write 170935 bytes to file\.")):
        monkeypatch.setattr(write.shutil, "disk_usage", lambda _, free=free: type("Usage", (), {"free": free})())
        with pytest.raises(CheckpointError, match=rf"out: .*{words} Nothing was left"):
            quantize_drafter(open_folder(folders[1]), open_folder(folders[0]), tmp_path / "out")


@pytest.mark.parametrize(("number", "written"), [(errno.EIO, False), (errno.ENOSPC, False), (errno.EINVAL, True)])
def test_bytes_that_do_not_reach_the_disk_are_not_called_written(
    number: int, written: bool, folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Disks of other computers say only at fsync that they are full. One that knows no fsync is another matter."""

    def fsync(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    with contextlib.nullcontext() if written else pytest.raises(CheckpointError, match="cannot be written"):
        quantize_drafter(open_folder(folders[1]), open_folder(folders[0]), tmp_path / "out")
    assert (tmp_path / "out").exists() == written


def test_a_projection_the_group_does_not_divide_stays_dense_with_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = Shape(mlp=96)
    target = write_target(tmp_path / "target", shape, group=64, bits=None)
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, "quantization": {"group_size": 64, "bits": 4}}))
    head = write_head(tmp_path / "head", shape)
    checkpoint = open_folder(target)
    packed = {
        f"{n.removesuffix('.weight')}.scales": TensorEntry(n, "BF16", (1,), e.file, 0, 0)
        for n, e in checkpoint.tensors.items()
    }
    claimed = Checkpoint(checkpoint.path, checkpoint.config, {**checkpoint.tensors, **packed})
    done = quantize_drafter(open_folder(head), claimed, tmp_path / "out")
    assert done.skipped == (("layers.0.mlp.down_proj", "its 96 inputs are no multiple of the group size 64"),)
