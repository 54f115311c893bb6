"""Broken forms of qmv_rows, one mistake each: what a reader, a compiler or a merge might do to it."""

from __future__ import annotations

from typing import NamedTuple

from engine.exactness.kernels.qmv_rows import HEADER, SOURCE


class Variant(NamedTuple):
    """old: a text of the header or the body. new: what stands there instead. fused: the form that has it."""

    old: str
    new: str
    fused: bool = False

    def texts(self) -> tuple[str, str]:
        """(header, body)."""
        assert (HEADER + SOURCE).count(self.old) == 1, f"the source has changed: {self.old}"
        return HEADER.replace(self.old, self.new), SOURCE.replace(self.old, self.new)


BROKEN = {
    "two lanes trade places": Variant(
        "const int lane = thread_index_in_simdgroup;",
        "const int lane = thread_index_in_simdgroup < 2 ? 1 - thread_index_in_simdgroup : thread_index_in_simdgroup;",
    ),
    "one lane walks K backwards": Variant(
        "for (int k = 0; k < inputs; k += BLOCK) {",
        "for (int step = 0; step < inputs; step += BLOCK) {\n"
        "        const int k = lane == 7 ? inputs - BLOCK - step : step;",
    ),
    "products of a word in another order": Variant(
        "products += (v[0] * a + v[1] * b + v[2] * c + v[3] * d);",
        "products += (v[3] * d + v[2] * c + v[1] * b + v[0] * a);",
    ),
    "one row misses the last block": Variant(
        "const size_t row = metal::min(first_row + r, rows - 1);",
        "if (r == 1 && k + BLOCK >= inputs) continue;\n"
        "            const size_t row = metal::min(first_row + r, rows - 1);",
    ),
    "one group has its neighbour's scale": Variant(
        "scale[o] = float(scales[group]);",
        "scale[o] = float(scales[o == 3 && lane == 31 && k == 0 ? group - 1 : group]);",
    ),
    "the last row of a tile repeats the one before": Variant(
        "const size_t row = metal::min(first_row + r, rows - 1);",
        "const size_t row = metal::min(first_row + r, rows - 2);",
    ),
    "the last output repeats the one before": Variant(
        "const size_t output = metal::min(first + o, outputs - 1);",
        "const size_t output = metal::min(first + o, outputs - 2);",
    ),
    "the other product is fused": Variant(
        "return metal::fma(scale, products, sum * bias);",
        "return metal::fma(sum, bias, scale * products);",
        fused=True,
    ),
    "a product of a word is not fused": Variant(
        "metal::fma(v[0], a, v[1] * b)",
        "metal::fma(v[1], b, v[0] * a)",
        fused=True,
    ),
    "sum and products are added to the total one after the other": Variant(
        "totals[r][o] += group_product<BITS, FUSED>(words[o], values, scale[o], bias[o], sum);",
        "totals[r][o] += group_product<BITS, FUSED>(words[o], values, scale[o], 0, sum);\n"
        "                totals[r][o] += sum * bias[o];",
    ),
    "the inputs are summed in pairs": Variant("sum += a + b + c + d;", "sum += (a + b) + (c + d);"),
    "rows are written to their neighbours": Variant(
        "y[size_t(first_row + r) * outputs + first + o] = T(total);",
        "y[size_t(metal::min(first_row + (r ^ 1), rows - 1)) * outputs + first + o] = T(total);",
    ),
}  # fmt: skip

HARMLESS = {
    "a power of two is multiplied, not divided": Variant("values[i + 1] = b / 16.0f;", "values[i + 1] = b * 0.0625f;"),
    "the order of outputs within a lane": Variant(
        "for (int r = 0; r < ROWS; r++) {\n            const size_t row",
        "for (int r = ROWS - 1; r >= 0; r--) {\n            const size_t row",
    ),
}
"""Other texts with the same bytes: a check that refuses these is not looking at bytes."""
