"""MLX's dispatch as a table, over every linear shape of the family, every width, every Apple GPU."""

from __future__ import annotations

import pytest

from engine.exactness.kernels.forced_qmv import CHUNKS, fitting_chunk
from engine.exactness.routing import (
    ALL_GPUS,
    Gpu,
    Kernel,
    Product,
    Weights,
    batch_limit,
    decode_kernel,
    known,
    route,
    stock_is_decode,
    table,
)

VOCAB = 248320


def dense(hidden: int, mlp: int, heads: int, kv: int, key_heads: int, value_heads: int) -> set[tuple[int, int]]:
    """(inputs, outputs) of a Qwen3.5 decoder's products: head dim 256, GDN heads of 128."""
    key, value = key_heads * 128, value_heads * 128
    return {
        (hidden, 2 * heads * 256), (hidden, kv * 256), (heads * 256, hidden), (hidden, mlp), (mlp, hidden),
        (hidden, 2 * key + value), (hidden, value), (hidden, value_heads), (value, hidden), (hidden, VOCAB),
    }  # fmt: skip


MODELS = {
    "0.8B": dense(1024, 3584, 8, 2, 16, 16),
    "2B": dense(2048, 6144, 8, 2, 16, 16),
    "4B": dense(2560, 9216, 16, 4, 16, 32),
    "9B": dense(4096, 12288, 16, 4, 16, 32),
    "27B": dense(5120, 17408, 24, 4, 16, 48),
    # Experts go through gather_qmm; what remains are attention, shared expert and router.
    "35B-A3B": dense(2048, 512, 16, 2, 16, 32) | {(2048, 256), (2048, 1)},
}
SHAPES = sorted({(m, *s) for m, shapes in MODELS.items() for s in shapes})


@pytest.mark.parametrize("gpu", ALL_GPUS, ids=lambda g: f"g{g.generation}{g.size}")
def test_under_forced_qmv_every_call_takes_the_kernel_of_one_row(gpu: Gpu) -> None:
    """Every shape, widths 1 to 8, every chunk size. Layers whose outputs are no multiple of 8 go row by row."""
    for _, inputs, outputs in SHAPES:
        decode = decode_kernel(gpu, Weights(inputs, outputs))
        for wanted in CHUNKS:
            chunk = fitting_chunk(outputs, wanted)
            if chunk is None:
                assert outputs % 8, f"{outputs} outputs have a chunk"
                continue
            assert outputs % chunk == 0
            for _width in range(1, 9):  # the width lies on the batch axis: the dispatch sees one row
                assert route(gpu, Product(1, inputs, chunk, batched=True)) is decode, (inputs, outputs, chunk)


def test_stock_blocks_take_qmv_wide_from_m3_on_and_the_decode_kernel_before() -> None:
    for gpu in ALL_GPUS:
        for _, inputs, outputs in SHAPES:
            for rows in range(2, 6):
                weights = Weights(inputs, outputs)
                assert stock_is_decode(gpu, weights, rows) == (gpu.generation < 15), (gpu, weights)


def test_wide_blocks_on_small_old_gpus_reach_the_tile_kernel() -> None:
    m1 = Gpu(13, "g")
    assert route(m1, Product(6, 5120, 17408)) is Kernel.QMM
    assert route(m1, Product(5, 5120, 17408)) is Kernel.QMV_FAST


@pytest.mark.parametrize(
    ("architecture", "shape", "limit"),
    [
        ("applegpu_g13g", (1024, 1024), 14), ("applegpu_g13g", (4096, 4096), 10), ("applegpu_g14s", (5120, 17408), 6),
        ("applegpu_g13d", (1024, 1024), 32), ("applegpu_g15d", (4096, 1024), 18), ("applegpu_g17d", (5120, 5120), 12),
        ("applegpu_g15s", (1024, 1024), 13), ("applegpu_g16g", (4096, 4096), 15), ("applegpu_g16s", (5120, 5120), 13),
        ("applegpu_g17g", (1024, 1024), 33), ("applegpu_g17s", (4096, 4096), 25), ("applegpu_g17s", (5120, 5120), 13),
    ],
)  # fmt: skip
def test_batch_limits(architecture: str, shape: tuple[int, int], limit: int) -> None:
    gpu = Gpu.parse(architecture)
    assert gpu is not None
    assert batch_limit(gpu, *shape) == limit


def test_other_kernels() -> None:
    m5 = Gpu(17, "s")
    assert route(m5, Product(1, 128, 512)) is Kernel.QMV_QUAD
    assert route(m5, Product(3, 128, 512)) is Kernel.QMV_QUAD
    assert route(m5, Product(1, 384, 512)) is Kernel.QMV
    assert route(Gpu(13, "g"), Product(2, 512, 512, mode="nvfp4")) is Kernel.QMV_WIDE


@pytest.mark.parametrize(
    ("inputs", "outputs", "bits", "kernel"),
    [
        (512, 12, 4, Kernel.QMV_FAST),  # outputs need not be a multiple of 8
        (768, 512, 4, Kernel.QMV),
        (768, 512, 8, Kernel.QMV_FAST),
        (512, 512, 6, Kernel.QMV_FAST),
        (128, 512, 6, Kernel.QMV),  # qmv_quad is for powers of two
        (128, 512, 8, Kernel.QMV_QUAD),
    ],
)
def test_the_kernel_of_one_row(inputs: int, outputs: int, bits: int, kernel: Kernel) -> None:
    """As MLX 0.32.4's library has it: K alone decides, in blocks that depend on the bits."""
    for gpu in ALL_GPUS:
        assert route(gpu, Product(1, inputs, outputs, bits=bits)) is kernel


def test_stock_is_judged_by_the_bits_of_the_layer() -> None:
    """K = 128: at 4 bits every number of rows takes qmv_quad; 6 bits have none, and from M3 on a block goes wide."""
    for gpu in ALL_GPUS:
        assert stock_is_decode(gpu, Weights(128, 512, bits=4), 3)
        assert stock_is_decode(gpu, Weights(128, 512, bits=6), 3) == (gpu.generation < 15)


def test_the_table_says_what_forced_qmv_does() -> None:
    """Only affine layers with a multiple of 8 outputs have a chunked view."""
    m4 = Gpu(16, "g")
    shapes = [Weights(512, 64), Weights(512, 64, bits=6), Weights(512, 64, "nvfp4"), Weights(512, 12)]
    rows = {row[0]: row[1:] for row in table(m4, [shapes[0], shapes[3]], (3,))}
    assert rows["512 x 64, 4 bit"] == ("qmv_fast", "qmv_wide", "qmv_fast")
    assert rows["512 x 12, 4 bit"] == ("qmv_fast", "qmv_wide", "row by row")
    assert table(m4, [shapes[1]], (3,)) == [("512 x 64, 6 bit", "qmv_fast", "qmv_wide", "qmv_fast")]
    assert table(m4, [shapes[2]], (3,))[0][-1] == "row by row"


def test_names_that_are_no_apple_gpu() -> None:
    assert Gpu.parse("x86_64") is None
    assert Gpu.parse("sm_90") is None
    assert Gpu.parse("applegpu_g16s") == Gpu(16, "s")


def test_versions() -> None:
    assert known("0.32.4")
    assert not known("0.31.9")
    assert not known("0.33.0")
