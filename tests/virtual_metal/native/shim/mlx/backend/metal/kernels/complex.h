// In place of MLX's header: complex numbers are named by its utilities and used by no kernel that is run here.
#pragma once
template <typename T>
struct complex_t {
    T real, imag;
    constexpr complex_t(T r, T i) : real(r), imag(i) {}
};
using complex64_t = complex_t<float>;
