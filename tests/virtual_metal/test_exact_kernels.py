"""Forced qmv, qmv_rows and gather give the bytes of one-row products, in Apple's compiled code.

In float32: 16-bit results are nearly blind to the order of additions. The kernels are the product's own, on modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.checkpoint.folder import open_folder
from engine.checkpoint.locate import demo_head, demo_target
from engine.exactness.kernels import ForcedQmv, Gather, MatmulKernel, QmvRows, qmv_rows
from engine.exactness.kernels.base import Scope
from engine.exactness.modules import wrap
from engine.exactness.routing import ALL_GPUS
from tests.unit.engine.test_routing import MODELS
from tests.virtual_metal import products
from tests.virtual_metal.conftest import differing, make_rows, make_weights
from tests.virtual_metal.mac import MACS, VirtualMac
from tests.virtual_metal.machine import Machine, Reduction
from tests.virtual_metal.source import Contraction
from tests.virtual_metal.trees import forced_trees, gather_trees, one_row_trees, rows_trees

WIDTHS = range(2, 9)
INPUTS = sorted({inputs for shapes in MODELS.values() for inputs, _ in shapes})
"""Every K of the family, 0.8B to 27B and the mixture of experts."""


@pytest.fixture
def mac(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> VirtualMac:
    mac = VirtualMac(machine, MACS["M5 Max"])
    mac.install(monkeypatch)
    return mac


def make_module(outputs: int, inputs: int, *, group: int = 64, bits: int = 4, dtype: mx.Dtype = mx.float32):
    """A quantized layer as a target has it."""
    w = make_weights(outputs, inputs, group=group, bits=bits, dtype=dtype)
    linear = nn.QuantizedLinear(inputs, outputs, bias=False, group_size=group, bits=bits)
    linear.weight, linear.scales, linear.biases = w.packed, w.scales, w.biases

    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [linear]

    holder = Holder()
    wrap(holder, Scope())
    return holder.layers[0]


def candidates(module, chunks: Sequence[int]) -> Iterator[tuple[str, MatmulKernel]]:
    for chunk in chunks:
        yield f"forced qmv, chunk {chunk}", ForcedQmv(chunk)
    yield "gather", Gather()
    if shape := qmv_rows.shape_of(module):
        for fused in (False, True):
            yield f"qmv_rows, fused {fused}", QmvRows(64, [qmv_rows.Served(*shape, fused)])


def wrong_values(
    module, dtype: mx.Dtype = mx.float32, widths: Sequence[int] = WIDTHS, chunks: Sequence[int] = (8, 32, 64)
) -> dict[tuple[str, int], int]:
    """Differing values by kernel and width, those without any left out."""
    x = make_rows(max(widths), module.weight.shape[-1] * 32 // module.bits, dtype=dtype)
    alone = mx.concatenate([module(x[j : j + 1]) for j in range(x.shape[0])])
    found = {}
    for name, kernel in candidates(module, chunks):
        for width in widths:
            if count := differing(kernel.linear(module, x[:width]), alone[:width]):
                found[name, width] = count
    return found


@pytest.mark.parametrize("inputs", INPUTS)
def test_every_input_size_of_the_family(mac: VirtualMac, inputs: int) -> None:
    """4 bit group 64, widths 2 to 8, 24 outputs: the reduction runs over K, so N is cut."""
    assert not wrong_values(make_module(24, inputs))
    assert mac.used["pacenote_qmv_rows"]


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("group", [32, 64, 128])
def test_every_scheme(mac: VirtualMac, bits: int, group: int) -> None:
    """All bits and groups that qmv_rows takes, with outputs that leave a simdgroup partly empty."""
    assert not wrong_values(make_module(28, 1024, group=group, bits=bits))


@pytest.mark.parametrize("dtype", [mx.bfloat16, mx.float16], ids=str)
def test_in_the_types_that_a_mac_runs(mac: VirtualMac, dtype: mx.Dtype) -> None:
    """Casts on the way in and out are one row's too. 16 bit sees little: the float32 tests are the strong ones."""
    assert not wrong_values(make_module(40, 1024, dtype=dtype), dtype, (2, 5, 8))


def demo_shapes() -> list[tuple[int, int]]:
    """(outputs, inputs) of every linear layer of the demo pair; the head's in its layout before quantization."""
    shapes = set()
    for folder in (demo_target(), demo_head()):
        for name, entry in open_folder(folder).tensors.items():
            if name.endswith(".scales"):
                group = 64
                shapes.add((entry.shape[0], entry.shape[1] * group))
            elif name.endswith(".weight") and entry.dtype != "U32" and len(entry.shape) == 2:
                shapes.add((entry.shape[0], entry.shape[1]))
    return sorted(shapes)


def test_all_linear_shapes_of_the_demo_pair(mac: VirtualMac) -> None:
    """Real N and K. Where K is no multiple of 512 one row takes qmv, and qmv_rows leaves the layer to forced qmv."""
    shapes = demo_shapes()
    assert len(shapes) > 5
    found = {shape: wrong for shape in shapes if (wrong := wrong_values(make_module(*shape), chunks=(64,)))}
    assert not found


@given(
    outputs=st.integers(1, 40),
    rows=st.integers(1, 8),
    blocks=st.integers(1, 3),
    bits=st.sampled_from(qmv_rows.BITS),
    seed=st.integers(0, 2**16),
)
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_shape(mac: VirtualMac, outputs: int, rows: int, blocks: int, bits: int, seed: int) -> None:
    """Any number of outputs and rows, also one of each; what was not written would differ, since y starts as NaN."""
    w = make_weights(outputs, 512 * blocks, bits=bits, seed=seed)
    x = make_rows(rows, 512 * blocks, seed=seed + 1)
    y = qmv_rows.product(x, w.packed, w.scales, w.biases, bits=bits, group=w.group, fused=True)
    assert differing(y, products.qmv(mac.machine, x, w)) == 0


def test_on_every_mac(machine: Machine) -> None:
    """As each generation and size would route it: the exact kernels everywhere, stock only before M3."""
    module = make_module(24, 1024)
    x = make_rows(3, 1024)
    for gpu in ALL_GPUS:
        with pytest.MonkeyPatch.context() as patch:
            VirtualMac(machine, gpu).install(patch)
            assert not wrong_values(module, widths=(3,)), gpu
            alone = mx.concatenate([module(x[j : j + 1]) for j in range(3)])
            assert (differing(module(x), alone) == 0) == (gpu.generation < 15), gpu


@pytest.mark.parametrize("order", list(Reduction))
def test_whatever_the_order_of_simd_sum(mac: VirtualMac, order: Reduction) -> None:
    """The hardware's order of adding lanes is not known; the claim needs only that it is fixed."""
    with mac.machine.adding(order):
        assert not wrong_values(make_module(24, 1024), widths=(3, 5))


@pytest.mark.parametrize("contraction", list(Contraction))
def test_explicit_fma_does_not_depend_on_what_the_compiler_contracts(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, contraction: Contraction
) -> None:
    """The plain form needs contraction within an expression, the compiler's default; the fused form nothing."""
    VirtualMac(machine, MACS["M5 Max"], contraction).install(monkeypatch)
    wrong = wrong_values(make_module(24, 1024), widths=(3,))
    assert ("qmv_rows, fused True", 3) not in wrong
    assert (("qmv_rows, fused False", 3) in wrong) == (contraction is not Contraction.ON)


@pytest.mark.parametrize(("bits", "group", "outputs"), [(4, 64, 24), (4, 32, 16), (8, 64, 24), (4, 128, 13)])
def test_equal_expression_trees(machine: Machine, bits: int, group: int, outputs: int) -> None:
    """Not equal by luck of rounding: the same operations on the same operands, in the same order."""
    w, x = make_weights(outputs, 1024, bits=bits, group=group), make_rows(5, 1024)
    expected = one_row_trees(machine, x, w)
    assert len(np.unique(expected)) == expected.size
    if outputs % 8 == 0:  # neither takes ragged outputs
        assert np.array_equal(forced_trees(machine, x, w, 8), expected)
        assert np.array_equal(gather_trees(machine, x, w), expected)
    for fused, tile in ((False, 5), (True, 3)):
        trees = rows_trees(machine, x, w, source=qmv_rows.SOURCE, header=qmv_rows.HEADER, tile=tile, fused=fused)
        assert np.array_equal(trees, expected), (fused, tile)
