"""The virtual Metal itself: its parts refuse what they cannot do, and both ways of running a kernel agree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from tests.virtual_metal import products
from tests.virtual_metal.air import to_host
from tests.virtual_metal.conftest import REQUIRED, differing, make_rows, make_weights
from tests.virtual_metal.machine import Machine, Reduction, scalar, to_numpy
from tests.virtual_metal.metallib import Metallib
from tests.virtual_metal.source import Contraction, flags, mlx_source
from tests.virtual_metal.toolchain import LLVM, Store, Toolchain, Unavailable

ROOT = Path(__file__).parents[2]


def from_source(
    machine: Machine, instance: str, x: mx.array, w: products.Weights, contraction: Contraction
) -> mx.array:
    """[M, N] of one of MLX's kernels compiled from its header, float32."""
    rows = x.shape[0]
    y = np.zeros((rows, w.outputs), np.float32)
    buffers = w.buffers() | {3: to_numpy(x), 4: y, 5: scalar(w.inputs), 6: scalar(w.outputs)}
    wide = "wide" in instance
    if wide:
        buffers[7] = scalar(rows)
    buffers |= {index + wide: array for index, array in products.strides(x, w, ()).items()}
    entry = machine.built(mlx_source(instance), *flags(machine.store, contraction))
    machine.dispatch(entry, buffers, (1 if wide else rows, -(-w.outputs // 8), 1), (32, 2, 1))
    return mx.array(y)


def test_apples_code_computes_the_product(machine: Machine) -> None:
    """Against MLX's CPU in float64: what runs here is a quantized product, and all of it was written."""
    w, x = make_weights(100, 1024), make_rows(4, 1024)
    dense = np.array(mx.dequantize(w.packed, w.scales, w.biases, group_size=64, bits=4), np.float64)
    exact = np.array(x, np.float64) @ dense.T
    for run in (products.qmv, products.qmv_wide):
        assert np.abs(np.array(run(machine, x, w), np.float64) - exact).max() < 1e-4


@pytest.mark.parametrize(
    ("instance", "run", "inputs"),
    [
        ("affine_qmv_fast<float, 64, 4, false>", products.qmv, 1024),
        ("affine_qmv<float, 64, 4, false>", products.qmv, 960),
        ("affine_qmv_wide<float, 64, 4, 3, 8, false>", products.qmv_wide, 1024),
    ],
)
def test_the_source_with_contraction_within_expressions_is_apples_code(
    machine: Machine, instance: str, run, inputs: int
) -> None:
    """The two ways agree bit for bit in float32 under -ffp-contract=on, and only there."""
    w, x = make_weights(64, inputs), make_rows(3, inputs)
    apple = run(machine, x, w)
    assert differing(from_source(machine, instance, x, w, Contraction.ON), apple) == 0
    assert differing(from_source(machine, instance, x, w, Contraction.OFF), apple) > apple.size // 2


def test_simd_sum_has_an_order_that_can_be_changed(machine: Machine) -> None:
    """The switch that other tests use really changes the last bits, and goes back."""
    w, x = make_weights(64, 1024), make_rows(3, 1024)
    usual = products.qmv(machine, x, w)
    for order in (Reduction.NEIGHBOURS, Reduction.ONE_BY_ONE):
        with machine.adding(order):
            assert differing(products.qmv(machine, x, w), usual) > 0
    assert differing(products.qmv(machine, x, w), usual) == 0


DIVERGENT = """
#include <metal_stdlib>
extern "C" void vm_entry(void** buffers, const uint32_t* position) {{
    const uint lane = vm_position<uint>(position, thread_index_in_simdgroup_);
    float* out = static_cast<float*>(buffers[0]);
    {body}
}}
"""


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("if (lane < 7) out[lane] = metal::simd_sum(1.0f);", "some lanes of the simdgroup do not reach"),
        (
            "out[lane] = lane < 7 ? metal::simd_sum(1.0f) : metal::simd_shuffle_down(1.0f, 1);",
            "at different simd_* calls",
        ),
    ],
)
def test_a_divergent_call_ends_the_process_with_a_sentence(machine: Machine, body: str, sentence: str) -> None:
    """Metal leaves it undefined; a kernel that does it must not seem to work here."""
    library = machine.store.library(
        DIVERGENT.format(body=body), ".cpp", "-std=c++20", *flags(machine.store, Contraction.ON)
    )
    code = (
        "import sys, ctypes, numpy as np\n"
        "from tests.virtual_metal.machine import Machine\nfrom tests.virtual_metal.toolchain import Store\n"
        "from pathlib import Path\n"
        f"machine = Machine(Store(Path({str(machine.store.folder)!r})))\n"
        f"entry = ctypes.CDLL({str(library)!r}).vm_entry\n"
        "machine.dispatch(entry, {0: np.zeros(32, np.float32)}, (1, 1, 1), (32, 1, 1))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode < 0
    assert sentence in done.stderr


def test_a_library_that_is_none_and_a_kernel_that_is_not_there_are_refused(machine: Machine, tmp_path: Path) -> None:
    """A renamed kernel in a new MLX is said by name."""
    (tmp_path / "other").write_bytes(b"ELF" + bytes(200))
    with pytest.raises(ValueError, match="no Metal library"):
        Metallib(tmp_path / "other")
    with pytest.raises(KeyError, match="affine_qmv_faster"):
        machine.library.bitcode("affine_qmv_faster")


def test_an_instruction_that_is_not_emulated_is_refused_by_name(machine: Machine) -> None:
    """Instead of a missing symbol at run time, or something that only looks like it."""
    name = "rmsfloat32"
    strange = machine.air(name).replace("@air.rsqrt.f32", "@air.rsqrt_of_a_new_kind.f32")
    with pytest.raises(ValueError, match=r"uses air\.rsqrt_of_a_new_kind\.f32"):
        to_host(strange, name, {})


def test_without_a_compiler_the_reason_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The skip names what is missing and what installs it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match=r"packaging/setup/virtual_metal\.sh"):
        Toolchain.find()


def test_without_the_wheel_the_reason_is_said(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip's own last word, and nothing half fetched stays."""
    lonely = Store(tmp_path / "new")
    monkeypatch.setattr(lonely, "version", "0.0.0.dev1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(Unavailable, match=r"mlx-metal==0\.0\.0\.dev1 could not be fetched: .+"):
        assert lonely.wheel
    assert not list((tmp_path / "new").rglob("*"))


def test_the_set_up_script_knows_the_same_compilers() -> None:
    """The script installs in the order in which the tests look, and CI does not skip."""
    script = (ROOT / "packaging/setup/virtual_metal.sh").read_text(encoding="utf-8")
    assert f'versions="{" ".join(LLVM)}"' in script
    assert f"{REQUIRED}=required" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_nothing_of_mlx_is_kept_in_the_repository() -> None:
    """What was fetched and built lies in a folder that git ignores."""
    listed = subprocess.run(["git", "ls-files", "--", "tests/virtual_metal"], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.split()
    if not names:
        pytest.skip("not a git checkout")
    assert {Path(n).suffix for n in names} <= {".py", ".cpp", ".h", ".md", ""}
    for name in names:
        assert "Apple Inc" not in (ROOT / name).read_text(encoding="utf-8").replace('"Apple Inc"', "")
