"""Whether a pair fits: the estimate against what really lies in memory, and the verdict against what is free."""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import replace
from math import prod
from pathlib import Path

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten

from engine.backend import Backend, Compute, Device
from engine.checkpoint.folder import Checkpoint, open_folder
from engine.checkpoint.head_shapes import linear_shapes, norm_shapes
from engine.checkpoint.safetensors_header import TensorEntry
from engine.cli.main import main
from engine.errors import CheckpointError
from engine.hub import fit as fits
from engine.hub.catalogue import catalogue
from engine.hub.connection import Connection, Patience
from engine.hub.errors import HubError
from engine.hub.fit import fit, fit_of, require_fit
from engine.hub.headers import inspect_repo
from engine.hub.hub import Hub
from engine.hub.need import head_tensors, need_of
from engine.hub.types import DoesNotFit, Fit, FitVerdict, Need
from engine.loading import load_drafter, load_pair
from engine.request import LoadOptions
from engine.target.load import load_target
from tests.support.expert_layouts import as_original, fused, per_expert, stacked
from tests.support.fake_hub import FakeHub, FakeRepo
from tests.support.tiny_pair import Shape, head_weights, write_head, write_target

GIB = 2**30
SHAPE = Shape(hidden_size=128, mlp=256)


def metal(limit: int) -> Backend:
    return Backend(Device.METAL, "M", "g", Compute.STORED, 2048, True, 32 * GIB, limit)


@pytest.mark.parametrize(
    ("shape", "bits", "compute"),
    [
        (SHAPE, 4, "dense bfloat16"),
        (SHAPE, 4, "float32"),
        (SHAPE, 8, "stored"),
        (SHAPE, None, "stored"),
        (replace(SHAPE, tied=True), 4, "stored"),
        (replace(SHAPE, experts=8), 4, "float32"),
    ],
)
def test_the_estimate_is_what_lies_in_memory(
    shape: Shape, bits: int | None, compute: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Target and head within half a percent of the loaded pair's bytes; caches within a step of the real ones."""
    monkeypatch.setenv("PACENOTE_COMPUTE", compute)
    target = write_target(tmp_path / "target", shape, bits=bits)
    head = write_head(tmp_path / "head", shape)
    options = LoadOptions(target=str(target), head=str(head))
    estimate = fit_of(options, context=256)
    checkpoint = open_folder(target)
    loaded = load_target(checkpoint, fits.detect(), lambda done, total: None, threading.Event())
    drafter = load_drafter(checkpoint, loaded, options)
    in_memory = sum(p.nbytes for _, p in tree_flatten(loaded.model.parameters()))
    assert estimate.need.target == pytest.approx(in_memory, rel=0.005)
    assert estimate.need.head == pytest.approx(drafter.info.bytes, rel=0.005)
    state = loaded.new_state()
    loaded.hidden(mx.array([1] * 256), state)
    of_target = sum(a.nbytes for a in state.arrays())
    of_head = estimate.need.cache // 2  # one attention layer in each of the two
    assert estimate.need.cache + estimate.need.recurrent - of_head == of_target
    assert estimate.need.boundary == of_target + of_head


def test_published_sizes_of_the_27b_pair() -> None:
    """Reference mtp.md 1.1: the head has 810.0 MiB in 16 bit and 227.9 MiB in 4 bit."""
    config = {
        "hidden_size": 5120, "num_attention_heads": 24, "num_key_value_heads": 4, "head_dim": 256,
        "intermediate_size": 17408, "num_hidden_layers": 64, "full_attention_interval": 4,
        "linear_num_key_heads": 16, "linear_num_value_heads": 48, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "vocab_size": 248320,
    }  # fmt: skip
    shapes = {**linear_shapes(config), **norm_shapes(config)}
    entries = {}
    for name, shape in shapes.items():
        entries[f"{name}.weight"] = TensorEntry(f"{name}.weight", "BF16", shape, Path("x"), 0, 2 * prod(shape))
    head = Checkpoint(Path("head"), {}, entries)
    bare = Checkpoint(Path("target"), {"text_config": config}, {})
    quantized = need_of(bare, head, context=8192)
    dense = need_of(bare, head, context=8192, quantize_head=False)
    assert dense.head / 2**20 == pytest.approx(810.0, abs=0.1)
    assert quantized.head / 2**20 == pytest.approx(227.9, abs=0.2)
    # 16 layers and the head's: 2 (keys, values) x 4 heads x 256 x 2 bytes x 8192 positions
    assert quantized.cache == 17 * 2 * 4 * 256 * 2 * 8192
    assert quantized.recurrent == 48 * (4 * 48 * 128 * 128 + 3 * (2 * 16 * 128 + 48 * 128) * 2)
    assert need_of(bare, None, context=8192).cache == 16 * 2 * 4 * 256 * 2 * 8192


def test_the_same_from_the_hub_without_a_tensor(empty_hub: FakeHub, tmp_path: Path) -> None:
    """Range reads of headers give what the folder gives; not a byte of a tensor travels."""
    folder = write_target(tmp_path / "model", SHAPE, bits=4)
    empty_hub.add("owner/model", folder)
    patience = Patience(tries=2, first_wait=0.0, longest_wait=0.0, stall=0.3)
    found = inspect_repo(Connection(empty_hub.endpoint, None, patience), "owner/model")
    here = open_folder(folder)
    assert found.checkpoint.tensors.keys() == here.tensors.keys()
    assert need_of(found.checkpoint, None, context=1024) == need_of(here, None, context=1024)
    header = min(entry.start for entry in here.tensors.values())
    assert empty_hub.sent == found.fetched == header + (folder / "config.json").stat().st_size


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"README.md": b"x"}, "no config.json"),
        ({"config.json": b"{}"}, "no weights"),
        ({"config.json": b"[]", "a.safetensors": b""}, "not a JSON object"),
        ({"config.json": b"{}", "a.safetensors": b"short"}, "no safetensors file"),
    ],
)
def test_a_repo_that_holds_no_model_says_so(files: dict[str, bytes], words: str, empty_hub: FakeHub) -> None:
    empty_hub.repos = {"owner/model": FakeRepo("c0ffee" + 34 * "0", files)}
    with pytest.raises(HubError, match=words):
        inspect_repo(Connection(empty_hub.endpoint), "owner/model")


def test_verdicts_have_edges_and_numbers() -> None:
    """At the limit it fits tightly, one byte above it does not; the sentence says how much is missing."""
    need = Need(target=10 * GIB, head=0, cache=0, recurrent=0, boundary=0, working=0)

    def at(limit: int) -> Fit:
        return fit(need, 8192, metal(24 * GIB), limit)

    assert at(10 * GIB).verdict is FitVerdict.TIGHT
    assert at(10 * GIB - 1).verdict is FitVerdict.NOT
    assert at(12 * GIB).verdict is FitVerdict.FITS
    assert str(at(7 * GIB)) == (
        "does not fit: needs about 10.0 GiB at 8,192 tokens, 7.0 GiB are free; 3.0 GiB more would be needed"
    )


def test_what_counts_is_the_smaller_of_free_memory_and_working_set() -> None:
    """A static share of the memory is not enough: other programs live there too (reference ux.md 1.4)."""
    need = Need(10 * GIB, 0, 0, 0, 0, 0)
    busy = fit(need, 1, metal(24 * GIB), 5 * GIB)
    assert (busy.limit, busy.verdict) == (5 * GIB, FitVerdict.NOT)
    idle = fit(need, 1, metal(9 * GIB), 30 * GIB)
    assert (idle.limit, idle.verdict) == (9 * GIB, FitVerdict.NOT)
    assert "lends at most 9.0 GiB" in str(idle)


def test_free_memory_is_live_and_held_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the model in use gives back is counted, and nothing is remembered between two looks."""
    monkeypatch.setattr(fits, "free_memory", lambda: 10 * 2**20)
    tight = fit_of(LoadOptions())
    assert tight.verdict is FitVerdict.NOT
    assert fit_of(LoadOptions(), held=GIB).verdict is FitVerdict.FITS
    monkeypatch.setattr(fits, "free_memory", lambda: 8 * GIB)
    assert fit_of(LoadOptions()).verdict is FitVerdict.FITS


def test_a_longer_context_needs_more_and_never_more_than_the_model_reads() -> None:
    short, long = fit_of(LoadOptions(), 1024), fit_of(LoadOptions(), 4096)
    assert long.need.cache > short.need.cache
    assert long.need.recurrent == short.need.recurrent
    assert fit_of(LoadOptions(), 10**6).context == 4096


def test_a_head_that_is_not_there_is_a_reason_and_no_error(tmp_path: Path) -> None:
    target = write_target(tmp_path / "target", SHAPE, bits=4)
    alone = fit_of(LoadOptions(target=str(target)))
    assert (alone.need.head, alone.head_reason) == (0, "There is no MTP head in it.")
    lost = fit_of(LoadOptions(target=str(target), head="owner/not-here"))
    assert "not in the Hugging Face cache" in lost.head_reason
    with pytest.raises(CheckpointError):
        fit_of(LoadOptions(target=str(tmp_path / "nowhere")))
    assert head_tensors(open_folder(target)) == {}


@pytest.mark.parametrize("value", [None, "x", [], float("inf")])
@pytest.mark.parametrize("key", ["num_key_value_heads", "full_attention_interval", "max_position_embeddings", "bits"])
def test_a_number_that_is_none_is_refused_in_words(
    key: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These ended in a traceback before anything was loaded. A head's configuration does not stop its target."""
    monkeypatch.setenv("PACENOTE_COMPUTE", "stored")  # where the head's scheme counts
    target, head = write_target(tmp_path / "target"), write_head(tmp_path / "head")
    head_config = json.loads((head / "config.json").read_text())
    (head / "config.json").write_text(json.dumps({**head_config, "quantization": {"bits": value, "group_size": 64}}))
    options = LoadOptions(target=str(target), head=str(head))
    found = fit_of(options)
    assert found.need.head == 0
    assert "config.json cannot be read" in found.head_reason
    config = json.loads((target / "config.json").read_text())
    (config["quantization"] if key == "bits" else config["text_config"])[key] = value
    (target / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=r"config\.json of target cannot be read"):
        require_fit(options)


def test_experts_count_alike_however_they_lie(tmp_path: Path) -> None:
    """Fused ones have no `.weight`; they are stacked and quantized like the others at load."""
    shape, needs = replace(SHAPE, experts=4), []
    target = open_folder(write_target(tmp_path / "target", shape, bits=4))
    for layout in (stacked, fused, per_expert):
        folder = tmp_path / layout.__name__
        folder.mkdir()
        mx.save_safetensors(str(folder / "model.safetensors"), as_original(layout(head_weights(shape)), "mtp."))
        shutil.copy(target.path / "config.json", folder)
        needs.append(need_of(target, open_folder(folder), context=1024).head)
    assert needs[0] == needs[1] == needs[2] > 0


def test_a_head_that_is_still_in_its_original_counts(
    empty_hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Was: "does it fit?" left out the head of six of the catalogue's eight pairs (ux.md 1.4: pocketpal-ai #850)."""
    target, original = write_target(tmp_path / "target", SHAPE, bits=4), tmp_path / "original"
    original.mkdir()
    mx.save_safetensors(str(original / "model.safetensors"), as_original(head_weights(SHAPE), "mtp."))
    config = json.loads((target / "config.json").read_text())
    config = {key: value for key, value in config.items() if not key.startswith("quantization")}  # it is in 16 bit
    (original / "config.json").write_text(json.dumps(config))
    for name in ("target", "original"):
        empty_hub.add(f"owner/{name}", tmp_path / name)
    hub = Hub(tmp_path / "heads", endpoint=empty_hub.endpoint)
    counted = hub.fit_remote("owner/target", "", threading.Event(), original="owner/original")
    alone = write_head(tmp_path / "head", SHAPE)
    here = fit_of(LoadOptions(target=str(target), head=str(alone)))
    assert counted.need == here.need
    assert counted.need.head > 0
    lost = hub.fit_remote("owner/target", "", threading.Event(), original="owner/gone")
    assert (lost.need.head, "owner/gone needs a token" in lost.head_reason) == (0, True)
    pair = catalogue()[0]
    monkeypatch.setattr(
        "engine.hub.catalogue.catalogue",
        lambda: (replace(pair, target="owner/target", head="", original="owner/gone"),),
    )
    monkeypatch.setenv("HF_ENDPOINT", empty_hub.endpoint)
    assert main(["models", "owner/target"]) == 0
    assert "no head is counted: owner/gone needs a token" in capsys.readouterr().out


@pytest.mark.parametrize("layers", [5, 2**40, float("inf")])
def test_more_layers_than_there_are_tensors_for_are_refused_before_they_are_built(
    layers: float, tmp_path: Path
) -> None:
    """Was: "load anyway" built 2^40 layers without end."""
    target = write_target(tmp_path / "target", SHAPE, bits=4)
    config = json.loads((target / "config.json").read_text())
    config["text_config"]["num_hidden_layers"] = layers
    (target / "config.json").write_text(json.dumps(config))
    for options in (LoadOptions(target=str(target)), LoadOptions(target=str(target), load_anyway=True)):
        with pytest.raises(CheckpointError, match=f"says {layers:,} layers; its tensors make {SHAPE.layers}"):
            load_pair(options, lambda step: None, threading.Event())


def test_what_cannot_be_run_does_not_fit_either(empty_hub: FakeHub, tmp_path: Path) -> None:
    """Was: a Llama and a head alone "fit", by the terminal and by the window's question to the hub."""
    hub, files = Hub(tmp_path / "heads", endpoint=empty_hub.endpoint), tmp_path / "target"
    write_target(files, SHAPE, bits=4)
    config = json.loads((files / "config.json").read_text())
    for kind, words in (("llama", "is a llama model"), ("qwen3_5_mtp", "is an MTP head, not a model")):
        (files / "config.json").write_text(json.dumps({**config, "model_type": kind}))
        empty_hub.add("owner/model", files)
        with pytest.raises(CheckpointError, match=f"owner/model {words}"):
            hub.fit_remote("owner/model", "", threading.Event())
        with pytest.raises(CheckpointError, match=f"target {words}"):
            fit_of(LoadOptions(target=str(files)))


def test_it_says_the_live_memory_of_this_machine() -> None:
    """A real figure: between 1 MiB and the machine's memory."""
    assert 2**20 < fits.free_memory() <= fits.detect().memory


def test_nothing_loads_that_does_not_fit_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every load passes this gate (reference ux.md 1.4); the refusal has figures and a way around it."""
    monkeypatch.setattr(fits, "free_memory", lambda: 2**20)
    monkeypatch.setattr(fits, "working_set", lambda backend: GIB)
    with pytest.raises(DoesNotFit) as caught:
        load_pair(LoadOptions(), lambda step: None, threading.Event())
    assert "does not fit in memory: it needs about" in caught.value.what
    assert "load it anyway" in caught.value.todo
    assert caught.value.fit.missing > 0
    require_fit(LoadOptions(load_anyway=True))
