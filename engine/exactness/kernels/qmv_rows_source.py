"""The Metal source of `qmv_rows`: MLX's one-row product for several rows at once, the weights read once.

What must not change is what one row computes, so this follows the arithmetic of `qmv_fast` (mlx/backend/metal/kernels/
quantized.h, MLX 0.32.4; reference mtp.md 3.2 and metal-on-cpu.md), operation by operation:

* A lane owns 16 consecutive values of K (8 at 8 bits) of every block of 512 (256), two packed words.
* 4 bits: x is divided by 1, 16, 256, 4096 in turn, so that nibbles need no shift; four products are added, then
  added to the lane's sum. 8 bits: one product after the other.
* Per block `scale * products + (sum of x) * bias` is added to the row's total; `simd_sum` adds the lanes at the end.

What is new is the order of work between rows: one simdgroup holds 4 outputs of ROWS inputs, and per block loads words,
scales and biases of its outputs once. Outputs past the end recompute the last one and rows past the end the last row;
neither is stored.

MLX's own kernels are compiled with contraction within an expression: a * b + c is rounded once. Whether the run-time
compiler does the same to this source is not known, so there are two forms, plain and with explicit fma (FUSED), and the
self-check in qmv_rows.py takes whichever gives the bytes of one row.
"""

HEADER = """
// Loads a lane's values of one input row, pre-divided; returns their sum.
template <typename T, int BITS, int VALUES>
inline float load_values(const device T* x, thread float* values) {
    float sum = 0;
    if (BITS == 4) {
        for (int i = 0; i < VALUES; i += 4) {
            float a = float(x[i]), b = float(x[i + 1]), c = float(x[i + 2]), d = float(x[i + 3]);
            sum += a + b + c + d;
            values[i] = a;
            values[i + 1] = b / 16.0f;
            values[i + 2] = c / 256.0f;
            values[i + 3] = d / 4096.0f;
        }
    } else {
        for (int i = 0; i < VALUES; i++) {
            values[i] = float(x[i]);
            sum += values[i];
        }
    }
    return sum;
}

// scale * (values . words) + sum * bias for one output and one input row.
template <int BITS, bool FUSED>
inline float group_product(const thread uint* words, const thread float* x, float scale, float bias, float sum) {
    float products = 0;
    if (BITS == 4) {
        for (int i = 0; i < 4; i++) {
            uint four = words[i / 2] >> (16 * (i % 2));
            float a = float(int(four & 0x000fu)), b = float(int(four & 0x00f0u));
            float c = float(int(four & 0x0f00u)), d = float(int(four & 0xf000u));
            const thread float* v = x + 4 * i;
            if (FUSED) {
                products += metal::fma(v[3], d, metal::fma(v[2], c, metal::fma(v[0], a, v[1] * b)));
            } else {
                products += (v[0] * a + v[1] * b + v[2] * c + v[3] * d);
            }
        }
    } else {
        for (int i = 0; i < 8; i++) {
            float a = float(int((words[i / 4] >> (8 * (i % 4))) & 0xffu));
            if (FUSED) {
                products = metal::fma(x[i], a, products);
            } else {
                products += x[i] * a;
            }
        }
    }
    if (FUSED) {
        return metal::fma(scale, products, sum * bias);
    }
    return scale * products + sum * bias;
}
"""

SOURCE = """
    constexpr int OUTPUTS = 4;
    constexpr int VALUES = 64 / BITS;
    constexpr int BLOCK = 32 * VALUES;
    const int rows = x_shape[0];
    const int inputs = x_shape[1];
    const int outputs = w_shape[0];
    const int lane = thread_index_in_simdgroup;
    const int first_row = threadgroup_position_in_grid.x * ROWS;
    const int first = (threadgroup_position_in_grid.y * 2 + simdgroup_index_in_threadgroup) * OUTPUTS;
    if (first >= outputs) {
        return;
    }
    const device uint* packed[OUTPUTS];
    size_t groups[OUTPUTS];
    for (int o = 0; o < OUTPUTS; o++) {
        const size_t output = metal::min(first + o, outputs - 1);
        packed[o] = w + output * (inputs * BITS / 32) + 2 * lane;
        groups[o] = output * (inputs / GROUP);
    }
    float totals[ROWS][OUTPUTS];
    for (int r = 0; r < ROWS; r++) {
        for (int o = 0; o < OUTPUTS; o++) {
            totals[r][o] = 0;
        }
    }
    for (int k = 0; k < inputs; k += BLOCK) {
        uint words[OUTPUTS][2];
        float scale[OUTPUTS];
        float bias[OUTPUTS];
        for (int o = 0; o < OUTPUTS; o++) {
            const device uint* here = packed[o] + k * BITS / 32;
            words[o][0] = here[0];
            words[o][1] = here[1];
            const size_t group = groups[o] + (k + lane * VALUES) / GROUP;
            scale[o] = float(scales[group]);
            bias[o] = float(biases[group]);
        }
        for (int r = 0; r < ROWS; r++) {
            const size_t row = metal::min(first_row + r, rows - 1);
            float values[VALUES];
            const float sum = load_values<T, BITS, VALUES>(x + row * inputs + k + lane * VALUES, values);
            for (int o = 0; o < OUTPUTS; o++) {
                totals[r][o] += group_product<BITS, FUSED>(words[o], values, scale[o], bias[o], sum);
            }
        }
    }
    for (int r = 0; r < ROWS; r++) {
        for (int o = 0; o < OUTPUTS; o++) {
            const float total = metal::simd_sum(totals[r][o]);
            if (lane == 0 && first_row + r < rows && first + o < outputs) {
                y[size_t(first_row + r) * outputs + first + o] = T(total);
            }
        }
    }
"""
