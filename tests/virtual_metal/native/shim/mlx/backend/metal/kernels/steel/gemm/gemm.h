// In place of MLX's header: the tile kernels, which are named by quantized.h and run on the host's own MLX here.
#pragma once
namespace mlx::steel {
template <typename T, typename U, int, int, int, int, int, bool, bool, int = 0, int = 0>
struct BlockMMA;
template <typename T, int, int, int, int, int, int = 1, int = 1>
struct BlockLoader;
}  // namespace mlx::steel
