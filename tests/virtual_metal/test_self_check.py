"""The self-check of qmv_rows finds broken forms of it, and only what passes and pays is served."""

from __future__ import annotations

import threading
from collections.abc import Callable

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from engine.errors import LoadCancelled
from engine.exactness.kernels import ForcedQmv, QmvRows, qmv_rows
from engine.exactness.kernels.qmv_rows import Served, Shape, survey
from tests.virtual_metal.conftest import differing, make_rows, make_weights
from tests.virtual_metal.mac import MACS, VirtualMac
from tests.virtual_metal.machine import Machine
from tests.virtual_metal.source import Contraction
from tests.virtual_metal.test_exact_kernels import make_module
from tests.virtual_metal.trees import one_row_trees, rows_trees
from tests.virtual_metal.variants import BROKEN, HARMLESS, Variant

OUTPUTS, INPUTS = 28, 1536
"""Outputs that leave a simdgroup partly empty; three blocks of K, since two may be added in either order."""
WIDTHS = (2, 3, 5)


@pytest.fixture
def become(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Callable[..., VirtualMac]:
    """A virtual M5 Max, its compiler and its clock as asked; the source of qmv_rows may be another one."""

    def become(contraction: Contraction = Contraction.ON, variant: Variant | None = None) -> VirtualMac:
        mac = VirtualMac(machine, MACS["M5 Max"], contraction)
        mac.install(monkeypatch)
        monkeypatch.setattr(qmv_rows, "least_ms", mac.virtual_ms)
        if variant:
            header, source = variant.texts()
            monkeypatch.setattr(qmv_rows, "HEADER", header)
            monkeypatch.setattr(qmv_rows, "SOURCE", source)
        return mac

    return become


def check(module, fused: bool) -> str:
    shape = qmv_rows.shape_of(module)
    assert shape is not None
    return qmv_rows.gives_the_bytes_of_one_row(module, shape, WIDTHS, fused=fused)


@pytest.mark.parametrize("name", BROKEN)
def test_every_broken_variant_is_refused(become: Callable[..., VirtualMac], name: str) -> None:
    """By the product's own check, on a layer whose own type is 16 bit."""
    become(variant=BROKEN[name])
    said = check(make_module(OUTPUTS, INPUTS, dtype=mx.bfloat16), BROKEN[name].fused)
    assert "values differ from one row's in float32" in said


@pytest.mark.parametrize("name", HARMLESS)
def test_the_same_bytes_by_another_text_are_accepted(become: Callable[..., VirtualMac], name: str) -> None:
    """The check looks at bytes, and the sound source passes it in both forms."""
    become(variant=HARMLESS[name])
    assert [check(make_module(OUTPUTS, INPUTS), fused) for fused in (False, True)] == ["", ""]


def test_in_16_bit_most_orders_of_addition_look_alike(
    become: Callable[..., VirtualMac], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why the check is in float32: of the variants that only add in another order, bfloat16 lets several pass."""
    module = make_module(OUTPUTS, INPUTS, dtype=mx.bfloat16)
    x = make_rows(3, INPUTS, dtype=mx.bfloat16)
    unseen = []
    for name in ("two lanes trade places", "products of a word in another order", "the other product is fused",
                 "a product of a word is not fused", "the inputs are summed in pairs"):  # fmt: skip
        become(variant=BROKEN[name])
        served = Served(INPUTS, OUTPUTS, 4, 64, BROKEN[name].fused)
        alone = mx.concatenate([module(x[j : j + 1]) for j in range(3)])
        if differing(QmvRows(8, [served]).linear(module, x), alone) == 0:
            unseen.append(name)
        monkeypatch.undo()
    assert len(unseen) >= 3, unseen


@pytest.mark.parametrize("name", BROKEN)
def test_broken_variants_have_other_trees(machine: Machine, name: str) -> None:
    """The comparison by tree sees them too, except which of two products is fused: trees leave that to the bytes."""
    header, source = BROKEN[name].texts()
    w, x = make_weights(OUTPUTS, INPUTS), make_rows(3, INPUTS)
    trees = rows_trees(machine, x, w, source=source, header=header, tile=3, fused=BROKEN[name].fused)
    same = np.array_equal(trees, one_row_trees(machine, x, w))
    assert same == (name in {"the other product is fused", "a product of a word is not fused"})


def test_a_sound_kernel_serves_what_it_knows_and_what_is_faster(become: Callable[..., VirtualMac]) -> None:
    """One layer of each shape is checked; dense layers, other sizes and other schemes are not its business."""
    mac = become()
    odd = make_module(16, 960)
    modules = [make_module(16, 1024), make_module(16, 1024), make_module(8, 512, bits=8), odd, nn.Linear(512, 8)]
    found = survey(modules, (2, 3), 8)
    assert found.served == (Served(512, 8, 8, 64, False), Served(1024, 16, 4, 64, False))
    assert found.note == ""
    assert mac.used["pacenote_qmv_rows"]
    assert survey([odd], (2, 3), 8).note == "qmv_rows: no layer has a shape that it knows."


def test_a_store_past_the_last_row_is_seen_by_the_virtual_metal(become: Callable[..., VirtualMac]) -> None:
    """No comparison of results can, and on a Mac it would hit another array: memory around outputs is watched here."""
    become(variant=Variant("first_row + r < rows && ", ""))
    module = make_module(16, 1024)
    assert check(module, False) == ""  # two, three and five rows fill their tile
    with pytest.raises(RuntimeError, match="wrote outside of its output"):
        qmv_rows.gives_the_bytes_of_one_row(module, Shape(1024, 16, 4, 64), (7,), fused=False)


@pytest.mark.parametrize("contraction", [Contraction.OFF, Contraction.FAST])
def test_where_the_compiler_contracts_otherwise_the_fused_form_serves(
    become: Callable[..., VirtualMac], contraction: Contraction
) -> None:
    """What the run-time compiler does is not known, so both forms are candidates and the bytes decide."""
    become(contraction)
    assert survey([make_module(16, 1024)], (2, 3), 8).served == (Served(1024, 16, 4, 64, True),)


def test_a_kernel_that_is_slower_than_forced_qmv_is_not_used(
    become: Callable[..., VirtualMac], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says so, with the figures that decided."""
    become()
    cost = {QmvRows: 2.0, ForcedQmv: 1.5}
    monkeypatch.setattr(qmv_rows, "least_ms", lambda runs: [cost[type(run.args[0].__self__)] for run in runs])
    found = survey([make_module(16, 1024)], (2, 3), 8)
    assert found.served == ()
    assert found.note == (
        "qmv_rows leaves 1 of 1 shapes to forced qmv: "
        "1024 x 16 (4-bit group 64): 2.000 ms for 3 rows, forced qmv takes 1.500."
    )


def test_a_broken_kernel_is_not_used_and_both_forms_are_named(become: Callable[..., VirtualMac]) -> None:
    become(variant=BROKEN["rows are written to their neighbours"])
    found = survey([make_module(16, 1024)], (2, 3), 8)
    assert found.served == ()
    assert "plain, " in found.note
    assert " and with explicit fma, " in found.note


def test_a_source_that_the_device_refuses_is_a_note_not_a_crash(become: Callable[..., VirtualMac]) -> None:
    """MLX raises when the run-time compiler fails."""
    become(variant=Variant("const int rows = x_shape[0];", "const int rows = x_shape[0] of the past;"))
    found = survey([make_module(16, 1024)], (2, 3), 8)
    assert found.served == ()
    assert "plain, " in found.note


def test_a_survey_can_be_cancelled_between_two_shapes(
    become: Callable[..., VirtualMac], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading a large model is cancelled within one shape's check."""
    become()
    cancel, checked = threading.Event(), []
    monkeypatch.setattr(qmv_rows, "_best", lambda _, shape, *__: (checked.append(shape), cancel.set(), None, "")[2:])
    with pytest.raises(LoadCancelled):
        survey([make_module(16, 1024), make_module(8, 512)], (2,), 8, cancel)
    assert checked == [Shape(512, 8, 4, 64)]


@pytest.mark.parametrize("rows", [1, 2, 8, 9])
def test_what_it_does_not_serve_goes_to_forced_qmv(become: Callable[..., VirtualMac], rows: int) -> None:
    """Other shapes, more than eight rows, another type: same bytes, other kernel. A bias is added as by the layer."""
    mac = become()
    module, other = make_module(16, 1024), make_module(24, 1024)
    module.bias = make_rows(1, 16)[0]
    kernel = QmvRows(8, [Served(*Shape(1024, 16, 4, 64), True)])
    x = make_rows(rows, 1024)
    for layer in (module, other):
        alone = mx.concatenate([layer(x[j : j + 1]) for j in range(rows)])
        assert differing(kernel.linear(layer, x), alone) == 0
        assert kernel.linear(layer, x[None]).shape == (1, rows, layer.weight.shape[0])
    assert mac.used.get("pacenote_qmv_rows", 0) == (2 if rows <= qmv_rows.MOST_ROWS else 0)
    mac.used.clear()
    assert kernel.linear(module, x.astype(mx.bfloat16)).shape == (rows, 16)
    assert "pacenote_qmv_rows" not in mac.used
