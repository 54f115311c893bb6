"""What the design rests on, as found in the wheel of the installed MLX. A new version that changes one is named here.

Three kinds of evidence: Apple's compiled kernels run here, their text, and the machine code of the host library.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache

import mlx.core as mx
import pytest

from engine.exactness.kernels import qmv_rows
from engine.exactness.routing import ALL_GPUS, Gpu, batch_limit
from tests.virtual_metal import products
from tests.virtual_metal.conftest import differing, make_rows, make_weights
from tests.virtual_metal.mac import HOST, MACS
from tests.virtual_metal.machine import Machine
from tests.virtual_metal.products import Weights
from tests.virtual_metal.rowwise import RowKernels, split_count
from tests.virtual_metal.toolchain import Store

TYPES = (mx.float32, mx.float16, mx.bfloat16)


def one_by_one(machine: Machine, x: mx.array, w: Weights) -> mx.array:
    return mx.concatenate([products.qmv(machine, x[j : j + 1], w) for j in range(x.shape[0])])


@pytest.mark.parametrize("inputs", [128, 960, 1024], ids=["qmv_quad", "qmv", "qmv_fast"])
def test_rows_of_a_one_row_kernel_do_not_see_each_other(machine: Machine, inputs: int) -> None:
    """M rows through qmv_quad, qmv and qmv_fast have the bytes of M calls: on M1 and M2 stock blocks are exact."""
    w, x = make_weights(40, inputs), make_rows(5, inputs)
    assert differing(products.qmv(machine, x, w), one_by_one(machine, x, w)) == 0


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("rows", [2, 3, 5, 8])
def test_qmv_wide_adds_in_another_order_and_16_bit_hardly_shows_it(
    machine: Machine, dtype: mx.Dtype, rows: int
) -> None:
    """Why stock blocks fail from M3 on, why self-checks are in float32, and why a 16-bit probe alone is not enough."""
    w, x = make_weights(128, 1024, dtype=dtype), make_rows(rows, 1024, dtype=dtype)
    wrong = differing(products.qmv_wide(machine, x, w), one_by_one(machine, x, w))
    total = 128 * rows
    assert wrong > total // 2 if dtype == mx.float32 else wrong < total // 50


def test_qmv_fast_gives_the_same_bytes_when_outputs_end_within_a_simdgroup(machine: Machine) -> None:
    """Its form for ragged outputs changes which rows are stored, not how one is computed."""
    w, x = make_weights(48, 1024), make_rows(2, 1024)
    whole = products.qmv(machine, x, w)
    for outputs in (1, 3, 45):
        cut = Weights(w.packed[:outputs], w.scales[:outputs], w.biases[:outputs], w.group, w.bits)
        assert differing(products.qmv(machine, x, cut), whole[:, :outputs]) == 0


def test_gather_has_no_kernel_for_ragged_outputs_and_for_64_or_128_inputs(machine: Machine) -> None:
    """Why the gather candidate leaves such layers to one-row calls."""
    for outputs, inputs, same in ((40, 1024, True), (44, 1024, False), (40, 128, False)):
        w, x = make_weights(outputs, inputs), make_rows(3, inputs)
        one = Weights(w.packed[None], w.scales[None], w.biases[None], w.group, w.bits)
        gathered = products.gather_qmv(machine, x[:, None], one, mx.zeros(3, mx.uint32))[:, 0]
        assert (differing(gathered, one_by_one(machine, x, w)) == 0) is same, (outputs, inputs)


def test_one_row_has_a_rotary_kernel_of_its_own_with_the_same_bytes(rowwise: RowKernels) -> None:
    """rope_single against rope, in every type, partial as in this family."""
    for dtype in TYPES:
        x = make_rows(4 * 5 * 64, 1, dtype=dtype).reshape(1, 4, 5, 64)

        def rotate(a: mx.array, offset: int) -> mx.array:
            return rowwise.rope(a, 16, traditional=False, base=1e7, scale=1.0, offset=offset)

        alone = mx.concatenate([rotate(x[:, :, j : j + 1], 37 + j) for j in range(5)], axis=2)
        assert differing(rotate(x, 37), alone) == 0


@pytest.mark.parametrize("size", [64, 512, 5120])
def test_row_norms_do_not_see_other_rows(rowwise: RowKernels, size: int) -> None:
    """One threadgroup per row, looped beyond 4,096 values. So the virtual Mac may leave norms to the host."""
    for dtype in TYPES:
        x, w = make_rows(4, size, dtype=dtype), make_rows(1, size, dtype=dtype, seed=2)[0]
        alone = mx.concatenate([rowwise.rms_norm(x[j : j + 1], w, 1e-6) for j in range(4)])
        assert differing(rowwise.rms_norm(x, w, 1e-6), alone) == 0


def attention_differs(machine: Machine, gpu: Gpu, keys: int, rows: int = 3, shared: int = 2) -> bool:
    """Whether a causal block attends with other bytes than its rows one at a time. shared: heads per key head."""
    kernels = RowKernels(machine, gpu, HOST, lambda *_: None)
    q = make_rows(shared * rows * 64, 1).reshape(1, shared, rows, 64)
    k, v = (make_rows(keys * 64, 1, seed=seed).reshape(1, 1, keys, 64) for seed in (2, 3))
    block = kernels.attention(q, k, v, scale=0.125, mask="causal")
    alone = []
    for j in range(rows):
        seen = keys - rows + 1 + j
        alone.append(kernels.attention(q[:, :, j : j + 1], k[:, :, :seen], v[:, :, :seen], scale=0.125))
    return differing(block, mx.concatenate(alone, axis=2)) > 0


@pytest.mark.parametrize("name", list(MACS))
def test_one_pass_attention_gives_a_block_the_bytes_of_its_rows(machine: Machine, name: str) -> None:
    """Below 1,024 keys a block may attend as a block, on every Mac."""
    for keys in (7, 100, 1000):
        assert not attention_differs(machine, MACS[name], keys)


@pytest.mark.parametrize(
    ("name", "keys", "rows", "shared", "differs"),
    [
        ("M5 Max", 1024, 3, 2, True),  # its first rows are still in one pass
        ("M5 Max", 1100, 2, 2, False),  # 2 x 2 and 1 x 2 are both cut into 64
        ("M5 Max", 1100, 3, 2, True),  # 128 against 64
        ("M3", 1100, 3, 2, False),  # a base chip still does one pass
        ("M3", 4200, 3, 2, True),  # 64 against 32
    ],
)
def test_two_pass_attention_cuts_the_keys_by_the_number_of_rows(
    machine: Machine, name: str, keys: int, rows: int, shared: int, differs: bool
) -> None:
    """Why the probe compares on both sides of 1,024 and 4,096 keys, and why rows attend one at a time beyond."""
    assert attention_differs(machine, MACS[name], keys, rows, shared) is differs


def test_the_split_counts_that_the_test_above_relies_on() -> None:
    """Query rows times heads per key head decide, on a Max and on a base chip."""
    assert [split_count(MACS["M5 Max"], n, 1100) for n in (2, 4, 6)] == [64, 64, 128]
    assert [split_count(MACS["M3"], n, 4200) for n in (2, 6)] == [32, 64]


@cache
def kernel_texts(machine: Machine) -> dict[str, str]:
    names = [
        "affine_qmv_fast_float_gs_64_b_4_batch_0_pr_0_hgs_0_r_4", "affine_qmv_float_gs_64_b_4_batch_0_pr_0_hgs_0_r_4",
        "affine_qmv_wide_bfloat16_t_gs_64_b_4_nv_3_kl_8_batch_0", "affine_gather_qmv_fast_float_gs_64_b_4",
    ]  # fmt: skip
    return {name: machine.air(name) for name in names}


def test_apples_compiler_fuses_within_expressions_and_reorders_nothing(machine: Machine) -> None:
    """fmuladd is there, nothing may be reassociated, fast math was off. The fused form of qmv_rows says just that."""
    for name, text in kernel_texts(machine).items():
        assert "@llvm.fmuladd.f32" in text, name
        assert not re.search(r"\bf(add|mul|sub|div) (fast|reassoc|contract|nnan|ninf|nsz|arcp|afn)", text), name
        assert "air.compile.fast_math_disable" in text, name
        assert "air.compile.denorms_disable" in text, name


def test_every_layer_that_qmv_rows_takes_has_a_one_row_kernel_to_compare_with(machine: Machine) -> None:
    """All types, bits and groups; and qmv_wide shares weights between at most five rows, as qmv_rows does."""
    for dtype in TYPES:
        for bits in qmv_rows.BITS:
            for group in qmv_rows.GROUPS:
                w = make_weights(8, 512, bits=bits, group=group, dtype=dtype)
                assert w.kernel("qmv_fast", "batch_0", "pr_0", "hgs_0", "r_4") in machine.library
                for rows in (2, 3, 4, 5, 6):
                    wide = w.kernel("qmv_wide", "nv", str(rows), "kl", "8", "batch_0")
                    assert (wide in machine.library) is (rows <= qmv_rows.TILE)


@cache
def machine_code(store: Store, function: str) -> str:
    """Arm code of the first function of the host library whose mangled name starts so."""
    library = store.member("mlx/lib/libmlx.dylib")
    symbol = re.search(rb"__Z" + function.encode() + rb"\w+", library.read_bytes())
    assert symbol is not None, f"{function} is not in this version's library"
    command = [store.tools.objdump, "--no-show-raw-insn", f"--disassemble-symbols={symbol[0].decode()}", str(library)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def constants(code: str, instruction: str) -> list[int]:
    return [int(n, 16) for n in re.findall(rf"\b{instruction}\s+w\d+, #(0x[0-9a-f]+)", code)]


def test_the_dispatch_takes_qmv_quad_for_64_and_128_inputs_and_qmv_wide_from_generation_15(store: Store) -> None:
    """dispatch_qmv compares with 128, 64, two rows and generation 15, in that order, and calls these three kernels."""
    code = machine_code(store, "N3mlx4core12dispatch_qmv")
    assert [c for c in constants(code, "cmp") if c in (0x80, 0x40, 15)] == [0x80, 0x40, 15]
    assert [re.search(rf"\bb\s.*core\d+{name}E", code) is not None for name in ("qmv_quad", "qmv_wide", "qmv")] == [
        True
    ] * 3
    assert re.search(r"cmp\s+w\d+, #0x2\n.*b\.lt", code)


def test_qmv_fast_is_chosen_by_the_inputs_alone_and_gathered_only_for_outputs_in_eights(store: Store) -> None:
    """qmv tests the outputs, for its ragged form, after K; gather_qmv tests them first and branches."""
    qmv, gather = (machine_code(store, f"N3mlx4core{name}E") for name in ("3qmv", "10gather_qmv"))
    assert re.search(r"msub(?s:.)*?tst\s+w\d+, #0x7\n.*ccmp", qmv)
    assert re.search(r"tst\s+w\d+, #0x7\n(?:.*\n){0,3}.*b\.ne", gather)
    assert re.search(r"lsl\s+(w\d+), \1, #5\n.*sdiv", qmv), "32 lanes take a block of K"


def test_the_dispatch_has_the_row_limits_of_the_routing_table(store: Store) -> None:
    """Every limit, generation and size bound of routing.batch_limit stands in QuantizedMatmul's code as a number."""
    code = machine_code(store, "N3mlx4core15QuantizedMatmul8eval_gpu")
    limits = {batch_limit(gpu, size, size) for gpu in ALL_GPUS for size in (2048, 4096, 5120)}
    assert limits <= set(constants(code, "mov"))
    assert {17, 15, ord("d"), 2048} <= set(constants(code, "cmp"))
    assert re.search(r"cmp\s+x\d+, #0x8\n", code), "the rows are folded for weights of two axes, eight bytes of shape"


@pytest.fixture
def rowwise(machine: Machine) -> RowKernels:
    return RowKernels(machine, MACS["M5 Max"], HOST, lambda *_: None)
