"""Prints the tables of docs/benchmark_results/exact-kernels-virtual-metal-*.md.

python -m tests.virtual_metal.record FOLDER    FOLDER: where to keep what is fetched and built
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import mlx.core as mx
import pytest

from engine.exactness.kernels import qmv_rows
from engine.tables import table
from tests.virtual_metal import products
from tests.virtual_metal.conftest import differing, make_rows, make_weights
from tests.virtual_metal.mac import MACS, VirtualMac
from tests.virtual_metal.machine import Machine
from tests.virtual_metal.test_exact_kernels import INPUTS, WIDTHS, candidates, demo_shapes, make_module
from tests.virtual_metal.toolchain import Store
from tests.virtual_metal.variants import BROKEN


def show(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    sys.stdout.write("\n".join(table(header, [tuple(map(str, row)) for row in rows])) + "\n\n")


def exact(shapes: Sequence[tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
    """(kernel, values that differ from one-row products, values compared), float32, widths 2 to 8."""
    wrong: dict[str, int] = {}
    seen: dict[str, int] = {}
    for outputs, inputs in shapes:
        module = make_module(outputs, inputs)
        x = make_rows(max(WIDTHS), inputs)
        alone = mx.concatenate([module(x[j : j + 1]) for j in range(x.shape[0])])
        for name, kernel in candidates(module, (64,)):
            for width in WIDTHS:
                wrong[name] = wrong.get(name, 0) + differing(kernel.linear(module, x[:width]), alone[:width])
                seen[name] = seen.get(name, 0) + width * outputs
    return ((name, wrong[name], seen[name]) for name in wrong)


def wide(machine: Machine) -> Iterator[tuple[str, int, int]]:
    """The same for MLX's own choice from M3 on."""
    for dtype in (mx.float32, mx.float16, mx.bfloat16):
        wrong = total = 0
        for inputs in (1024, 5120):
            w, x = make_weights(128, inputs, dtype=dtype), make_rows(8, inputs, dtype=dtype)
            alone = mx.concatenate([products.qmv(machine, x[j : j + 1], w) for j in range(8)])
            for width in WIDTHS:
                wrong += differing(products.qmv_wide(machine, x[:width], w), alone[:width])
                total += 128 * width
        yield f"qmv_wide, {str(dtype).removeprefix('mlx.core.')}", wrong, total


def broken() -> Iterator[tuple[str, str, str]]:
    """What the self-check says of each broken variant, and whether bfloat16 alone would have seen it."""
    module = make_module(28, 1536, dtype=mx.bfloat16)
    shape = qmv_rows.shape_of(module)
    assert shape is not None
    x = make_rows(3, 1536, dtype=mx.bfloat16)
    alone = mx.concatenate([module(x[j : j + 1]) for j in range(3)])
    for name, variant in BROKEN.items():
        with pytest.MonkeyPatch.context() as patch:
            for attribute, text in zip(("HEADER", "SOURCE"), variant.texts(), strict=True):
                patch.setattr(qmv_rows, attribute, text)
            said = qmv_rows.gives_the_bytes_of_one_row(module, shape, (2, 3, 5), fused=variant.fused)
            served = [qmv_rows.Served(*shape, variant.fused)]
            seen = differing(qmv_rows.QmvRows(8, served).linear(module, x), alone)
        yield name, said or "NOT FOUND", f"{seen} of {x.shape[0] * 28}"


def main() -> None:
    machine = Machine(Store(Path(sys.argv[1])))
    with pytest.MonkeyPatch.context() as patch:
        VirtualMac(machine, MACS["M5 Max"]).install(patch)
        header = ("kernel", "values that differ", "compared")
        show(header, list(exact([(24, inputs) for inputs in INPUTS])))
        show(header, list(exact(demo_shapes())))
        show(header, list(wide(machine)))
        show(("broken variant", "self-check", "bfloat16 values that differ, 3 rows"), list(broken()))


if __name__ == "__main__":
    main()
