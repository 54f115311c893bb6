"""A virtual Metal: MLX's shipped kernels, and our own, run on the CPU. See README.md beside this file."""
