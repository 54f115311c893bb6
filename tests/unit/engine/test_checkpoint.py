"""Bad input: every broken folder is refused in words that say what to do, and none crashes."""

from __future__ import annotations

import contextlib
import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.checkpoint.folder import open_folder
from engine.checkpoint.head import read_head
from engine.checkpoint.locate import locate
from engine.checkpoint.safetensors_header import parse_header
from engine.errors import CheckpointError, KnownError
from tests.support.rig import load_tiny
from tests.support.tiny_pair import Shape, head_weights, write_head, write_target


@pytest.fixture
def folders(tiny_folders: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    return (
        shutil.copytree(tiny_folders[0], tmp_path / "target"),
        shutil.copytree(tiny_folders[1], tmp_path / "head"),
    )


def edit_config(folder: Path, change: Callable[[dict], None]) -> None:
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def cut(path: Path, keep: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])


def break_header(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8:40] = b"x" * 32
    path.write_bytes(data)


def name_a_missing_shard(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model-2.safetensors"}}))


def name_a_missing_tensor(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"nowhere": "model.safetensors"}}))


BROKEN_TARGETS = {
    "no folder": (lambda f: shutil.rmtree(f), "no folder"),
    "no config": (lambda f: (f / "config.json").unlink(), "no config.json"),
    "config is no JSON": (lambda f: (f / "config.json").write_text("{"), "config.json cannot be read"),
    "config is a list": (lambda f: (f / "config.json").write_text("[]"), "not a JSON object"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "no weights"),
    "empty file": (lambda f: (f / "model.safetensors").write_bytes(b""), "too short"),
    "file cut in the data": (lambda f: cut(f / "model.safetensors", 0.6), "file ends before"),
    "file cut in the header": (lambda f: cut(f / "model.safetensors", 0.001), "header is longer"),
    "header is garbage": (lambda f: break_header(f / "model.safetensors"), "not JSON"),
    "missing shard": (name_a_missing_shard, "model-2.safetensors is missing"),
    "missing tensor": (name_a_missing_tensor, "nowhere"),
    "another architecture": (lambda f: edit_config(f, lambda c: c.update(model_type="llama")), "llama"),
    "another hidden size": (
        lambda f: edit_config(f, lambda c: c["text_config"].update(hidden_size=128)),
        "do not fit its configuration",
    ),
    "more layers than tensors": (
        lambda f: edit_config(f, lambda c: c["text_config"].update(num_hidden_layers=8)),
        "says 8 layers; its tensors make 4",
    ),
    "a size is null": (
        lambda f: edit_config(f, lambda c: c["text_config"].update(num_key_value_heads=None)),
        "config.json of target cannot be read",
    ),
    "fewer inputs than groups": (
        lambda f: edit_config(f, lambda c: c["text_config"].update(hidden_size=1)),
        "do not fit its configuration",
    ),
    "a table is a word": (
        lambda f: edit_config(f, lambda c: c["text_config"].update(rope_parameters="x")),
        "do not fit its configuration",
    ),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "tokenizer"),
    "damaged tokenizer": (lambda f: (f / "tokenizer.json").write_text("{}"), "tokenizer"),
}


@pytest.mark.parametrize("name", BROKEN_TARGETS)
def test_a_broken_target_is_refused_in_words(name: str, folders: tuple[Path, Path]) -> None:
    breaking, words = BROKEN_TARGETS[name]
    breaking(folders[0])
    with pytest.raises(KnownError, match=words) as caught:
        load_tiny(*folders)
    assert caught.value.todo, "says what to do"


def rewrite_head(folder: Path, change: Callable[[dict[str, mx.array]], None]) -> None:
    weights = head_weights(Shape())
    change(weights)
    mx.save_safetensors(str(folder / "model.safetensors"), weights)


BROKEN_HEADS = {
    "missing norm": (lambda w: w.pop("norm.weight"), "norm.weight"),
    "extra tensor": (lambda w: w.update({"layers.1.mlp.up_proj.weight": mx.zeros((2, 2))}), "layers.1.mlp.up_proj"),
    "wrong shape": (lambda w: w.update({"fc.weight": mx.zeros((64, 64))}), r"fc.weight has shape \[64, 64\]"),
    "wrong type": (lambda w: w.update({"norm.weight": mx.zeros(64, dtype=mx.int32)}), "norm.weight has type I32"),
    "norm of another size": (lambda w: w.update({"norm.weight": mx.ones(32)}), r"norm.weight has shape \[32\]"),
    "no head at all": (lambda w: (w.clear(), w.update({"x": mx.ones(3)})), "holds no MTP head"),
}


@pytest.mark.parametrize("name", BROKEN_HEADS)
def test_a_broken_head_is_named_and_the_target_still_loads(name: str, folders: tuple[Path, Path]) -> None:
    """mlx-serve #120, mlx-engine #370: a head skipped silently on a name mismatch."""
    change, words = BROKEN_HEADS[name]
    rewrite_head(folders[1], change)
    with pytest.raises(CheckpointError, match=words):
        read_head(open_folder(folders[1]), Shape().text_config())


def test_a_target_without_a_usable_head_loads_and_says_why(folders: tuple[Path, Path]) -> None:
    """Its config still says mtp_num_hidden_layers: 1, as most 4-bit conversions do."""
    pair = load_tiny(folders[0], None)
    assert pair.drafter is None
    assert pair.info.drafter is None
    assert "no MTP head" in pair.info.drafter_reason
    assert pair.info.verdict.state == "not run"


def test_a_head_of_another_hidden_size_is_refused_by_name(folders: tuple[Path, Path], tmp_path: Path) -> None:
    other = write_head(tmp_path / "other", Shape(hidden_size=96))
    pair = load_tiny(folders[0], other)
    assert pair.drafter is None
    assert "norm_embedding.weight has shape [96], this model needs [64]" in pair.info.drafter_reason


@pytest.mark.parametrize("prefix", ["mtp.", "language_model.mtp."])
def test_norms_are_shifted_by_prefix_only(prefix: str, folders: tuple[Path, Path]) -> None:
    """A double or missing shift does not crash, it silently costs acceptance. Inside a target: stored w - 1."""
    used = head_weights(Shape())
    stored = {
        prefix + name: (w - 1 if name.endswith("norm.weight") or "_norm_" in name or "layernorm" in name else w)
        for name, w in used.items()
    }
    target = mx.load(str(folders[0] / "model.safetensors"))
    mx.save_safetensors(str(folders[0] / "model.safetensors"), {**target, **stored})
    inside = read_head(open_folder(folders[0]), Shape().text_config())
    alone = read_head(open_folder(folders[1]), Shape().text_config())
    assert set(inside.weights) == set(alone.weights)
    for name, w in alone.weights.items():
        assert mx.allclose(inside.weights[name].astype(mx.float32), w.astype(mx.float32), atol=1e-2), name


def test_a_head_inside_the_target_is_found_and_drafts(folders: tuple[Path, Path]) -> None:
    used = head_weights(Shape())
    stored = {f"mtp.{n}": (w - 1 if w.ndim == 1 else w) for n, w in used.items()}
    target = mx.load(str(folders[0] / "model.safetensors"))
    mx.save_safetensors(str(folders[0] / "model.safetensors"), {**target, **stored})
    pair = load_tiny(folders[0], None)
    assert pair.drafter is not None
    assert pair.info.verdict.widths


def test_the_fingerprint_follows_weights_and_config(folders: tuple[Path, Path]) -> None:
    first = open_folder(folders[0]).fingerprint()
    assert first == open_folder(folders[0]).fingerprint()
    edit_config(folders[0], lambda c: c.update(note=1))
    second = open_folder(folders[0]).fingerprint()
    path = folders[0] / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert len({first, second, open_folder(folders[0]).fingerprint()}) == 3


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("", "No model was named"),
        ("/nowhere/at/all", "There is no folder"),
        ("owner/not-in-the-cache", "There is no folder owner/not-in-the-cache, .*not in the Hugging Face cache"),
        ("~nobody-has-this-name/x", "cannot be looked at: Could not determine home directory"),
        ("x" * 300, "cannot be looked at: File name too long"),
    ],
)
def test_places_that_do_not_exist(place: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(CheckpointError, match=words):
        locate(place)


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match="is a file"):
        locate(str(tmp_path / "model.safetensors"))


def test_the_shadow_files_of_macos_are_no_weights(folders: tuple[Path, Path]) -> None:
    """On disks of other systems it keeps a "._NAME" beside each file, which is no safetensors file."""
    (folders[1] / "._model.safetensors").write_bytes(b"\0\5\x16\7" * 40)
    assert "fc.weight" in open_folder(folders[1]).tensors


NUMBER = st.integers() | st.just(float("inf")) | st.none() | st.text(max_size=2)
ENTRY = st.fixed_dictionaries(
    {"dtype": st.sampled_from(["BF16", "F32", "Q4", None]), "shape": st.lists(NUMBER, max_size=3) | NUMBER},
    optional={"data_offsets": st.lists(NUMBER, min_size=1, max_size=3) | NUMBER},
)


@given(st.dictionaries(st.text(max_size=3), ENTRY | NUMBER, max_size=3))
@example({"a": {"dtype": "F32", "shape": [float("inf")], "data_offsets": [0, 4]}})
@settings(deadline=None)
def test_any_header_table_is_read_or_refused(table: dict) -> None:
    with contextlib.suppress(CheckpointError):
        parse_header(json.dumps(table).encode(), Path("x.safetensors"), 8, 10_000)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_json_that_is_too_deep_is_refused(name: str, folders: tuple[Path, Path]) -> None:
    deep = b"[" * 200_000
    (folders[1] / name).write_bytes(deep if name == "config.json" else struct.pack("<Q", len(deep)) + deep)
    with pytest.raises(CheckpointError, match=f"{name} (cannot be read|is damaged)"):
        open_folder(folders[1])


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_any_header_bytes_are_read_or_refused(raw: bytes) -> None:
    with contextlib.suppress(CheckpointError):
        parse_header(raw, Path("x.safetensors"), 8 + len(raw), 10_000)


@pytest.mark.parametrize("metadata", [{"format": 1}, {"format": float("inf")}])
def test_what_only_mlx_reads_in_a_header_is_refused_in_words(metadata: dict, folders: tuple[Path, Path]) -> None:
    path = folders[1] / "model.safetensors"
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.dumps({**json.loads(data[8 : 8 + length]), "__metadata__": metadata}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data[8 + length :])
    with pytest.raises(CheckpointError, match=r"model\.safetensors cannot be read"):
        read_head(open_folder(folders[1]), Shape().text_config())


def test_overlong_header_length_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", 2**60) + b"{}")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="header is longer"):
        open_folder(tmp_path)


def test_a_sharded_target_loads(tmp_path: Path) -> None:
    folder = write_target(tmp_path / "t")
    weights = mx.load(str(folder / "model.safetensors"))
    names = sorted(weights)
    (folder / "model.safetensors").unlink()
    shards = {}
    for n in range(2):
        part = {k: weights[k] for k in names[n::2]}
        name = f"model-0000{n + 1}-of-00002.safetensors"
        mx.save_safetensors(str(folder / name), part)
        shards.update(dict.fromkeys(part, name))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    pair = load_tiny(folder, None)
    assert pair.info.parameters > 100_000
