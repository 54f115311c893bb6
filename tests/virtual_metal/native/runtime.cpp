// One virtual GPU: runs the threadgroups of a dispatch one after another, each thread as a fiber with a stack of its own.
//
// The lanes of a simdgroup meet at every simd_* call and the threads of a threadgroup at every barrier, as on the GPU.
// A lane that is missing there (a divergent call, undefined behaviour in Metal) ends the process with a sentence.
// Denormals are flushed, as Apple's kernels ask for (air.compile.denorms_disable).
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace {

constexpr unsigned lanes = 32;
constexpr unsigned most_threads = 1024;
constexpr size_t stack_bytes = 64 << 10;

// Where a kernel finds its position; the order is that of POSITIONS in tests/virtual_metal/air.py.
struct Position {
    uint32_t threadgroup_position_in_grid[3], threadgroups_per_grid[3];
    uint32_t thread_position_in_threadgroup[3], threads_per_threadgroup[3];
    uint32_t thread_position_in_grid[3], threads_per_grid[3];
    uint32_t simdgroup_index_in_threadgroup[3], thread_index_in_simdgroup[3];
    uint32_t quadgroup_index_in_threadgroup[3], thread_index_in_quadgroup[3];
    uint32_t thread_index_in_threadgroup[3], simdgroups_per_threadgroup[3], threads_per_simdgroup[3];
};

using Entry = void (*)(void** buffers, const Position* position);

enum State : uint8_t { ready, at_simd, at_barrier, done };
enum Operation : uint32_t { sum, maximum, shuffle_down, quad_sum };

struct Fiber {
    jmp_buf where;
    State state;
    bool started;
    Operation operation;
    unsigned delta;
    float value;
    uint64_t tree;  // of `value`, in a trace build
    Position position;
};

Fiber fibers[most_threads];
char* stacks;
jmp_buf scheduler;
Fiber* running;
Entry entry;
void** entry_buffers;
int reduction = 0;

[[noreturn]] void give_up(const char* why) {
    fprintf(stderr, "virtual Metal: %s\n", why);
    abort();
}

// setjmp and longjmp switch without a system call; makecontext only gives a fiber its stack.
void leave(State state) {
    running->state = state;
    if (!_setjmp(running->where)) _longjmp(scheduler, 1);
}

void fiber_body() {
    for (;;) {
        entry(entry_buffers, &running->position);
        leave(done);
    }
}

void enter(Fiber& fiber) {
    running = &fiber;
    if (_setjmp(scheduler)) return;
    if (fiber.started) _longjmp(fiber.where, 1);
    fiber.started = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks + (&fiber - fibers) * stack_bytes;
    context.uc_stack.ss_size = stack_bytes;
    context.uc_link = nullptr;
    makecontext(&context, fiber_body, 0);
    setcontext(&context);
}

uint64_t hash_sum(uint64_t a, uint64_t b) {  // commutative, as IEEE addition is
    uint64_t low = a < b ? a : b, high = a < b ? b : a;
    uint64_t h = low * 0x9E3779B97F4A7C15ull ^ (high + 0x7F4A7C15ull) * 0xC2B2AE3D27D4EB4Full;
    return h ^ h >> 29;
}

// The hardware's order is not known. 0: halves (16, 8, ... 1). 1: neighbours first. 2: one lane after the other.
void add_up(Fiber* group, unsigned first, unsigned count) {
    float value[lanes];
    uint64_t tree[lanes];
    for (unsigned i = 0; i < count; i++) value[i] = group[first + i].value, tree[i] = group[first + i].tree;
    auto into = [&](unsigned i, unsigned j) { value[i] += value[j], tree[i] = hash_sum(tree[i], tree[j]); };
    if (reduction == 2)
        for (unsigned i = 1; i < count; i++) into(0, i);
    else if (reduction == 1)
        for (unsigned step = 1; step < count; step *= 2)
            for (unsigned i = 0; i < count; i += 2 * step) into(i, i + step);
    else
        for (unsigned step = count / 2; step; step /= 2)
            for (unsigned i = 0; i < step; i++) into(i, i + step);
    for (unsigned i = 0; i < count; i++) group[first + i].value = value[0], group[first + i].tree = tree[0];
}

void meet(Fiber* group) {
    switch (group->operation) {
    case sum: add_up(group, 0, lanes); break;
    case quad_sum:
        for (unsigned i = 0; i < lanes; i += 4) add_up(group, i, 4);
        break;
    case maximum: {
        float most = group->value;
        for (unsigned i = 1; i < lanes; i++) most = group[i].value > most ? group[i].value : most;
        for (unsigned i = 0; i < lanes; i++) group[i].value = most;
        break;
    }
    case shuffle_down: {
        // Lanes past the end keep their own value: Metal leaves it undefined, and no result may depend on it.
        float value[lanes];
        uint64_t tree[lanes];
        for (unsigned i = 0; i < lanes; i++) {
            unsigned from = i + group[i].delta < lanes ? i + group[i].delta : i;
            value[i] = group[from].value, tree[i] = group[from].tree;
        }
        for (unsigned i = 0; i < lanes; i++) group[i].value = value[i], group[i].tree = tree[i];
    }
    }
}

// Runs the lanes of one simdgroup until they are done or at a barrier. The last simdgroup may have fewer than 32.
void advance(Fiber* group, unsigned here) {
    for (;;) {
        unsigned waiting = 0;
        for (unsigned i = 0; i < here; i++) {
            if (group[i].state == ready) enter(group[i]);
            waiting += group[i].state == at_simd;
        }
        if (!waiting) return;
        if (waiting != lanes) give_up("a simd_* call that some lanes of the simdgroup do not reach");
        for (unsigned i = 1; i < lanes; i++)
            if (group[i].operation != group->operation) give_up("lanes of one simdgroup at different simd_* calls");
        meet(group);
        for (unsigned i = 0; i < lanes; i++) group[i].state = ready;
    }
}

void run_threadgroup(unsigned threads) {
    for (unsigned i = 0; i < threads; i++) fibers[i].state = ready;
    for (;;) {
        for (unsigned i = 0; i < threads; i += lanes) advance(fibers + i, threads - i < lanes ? threads - i : lanes);
        unsigned finished = 0;
        for (unsigned i = 0; i < threads; i++) finished += fibers[i].state == done;
        if (finished == threads) return;
        if (finished) give_up("a barrier that some threads of the threadgroup do not reach");
        for (unsigned i = 0; i < threads; i++) fibers[i].state = ready;
    }
}

float meeting(Operation operation, float value, unsigned delta = 0) {
    Fiber* self = running;
    self->operation = operation, self->value = value, self->delta = delta, self->tree = 0;
    leave(at_simd);
    return self->value;
}

}  // namespace

extern "C" {

float simd_sum(float v) __asm__("air.simd_sum.f32");
float simd_max(float v) __asm__("air.simd_max.f32");
float quad_sum_(float v) __asm__("air.quad_sum.f32");
float simd_shuffle_down(float v, uint16_t delta) __asm__("air.simd_shuffle_down.f32");
void barrier(int, int) __asm__("air.wg.barrier");

float simd_sum(float v) { return meeting(sum, v); }
float simd_max(float v) { return meeting(maximum, v); }
float quad_sum_(float v) { return meeting(quad_sum, v); }
float simd_shuffle_down(float v, uint16_t delta) { return meeting(shuffle_down, v, delta); }
void barrier(int, int) { leave(at_barrier); }

// simd_sum of a trace build: also adds up the hashes of the expression trees.
float vm_traced_sum(float value, uint64_t* tree) {
    Fiber* self = running;
    self->operation = sum, self->value = value, self->tree = *tree;
    leave(at_simd);
    *tree = self->tree;
    return self->value;
}

// Rounding to bfloat16, to nearest even; libgcc has it from version 13 on only.
__bf16 __truncsfbf2(float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    uint16_t top = (bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16) | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    __bf16 out;
    memcpy(&out, &top, 2);
    return out;
}

void vm_reduction(int order) { reduction = order; }

// grid: threadgroups. group: threads in each.
void vm_dispatch(Entry kernel, void** buffers, const uint32_t* grid, const uint32_t* group) {
    unsigned threads = group[0] * group[1] * group[2];
    if (!threads || threads > most_threads) give_up("a threadgroup of a size that no Mac runs");
    if (!stacks) {
        void* got = mmap(nullptr, most_threads * stack_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (got == MAP_FAILED) give_up("no memory for the stacks");
        stacks = static_cast<char*>(got);
    }
#if defined(__x86_64__)
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
#elif defined(__aarch64__)
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" ::"r"(before | 1ull << 24));
#endif
    entry = kernel, entry_buffers = buffers;
    for (unsigned i = 0; i < threads; i++) {
        Position& p = fibers[i].position;
        const uint32_t at[3] = {i % group[0], i / group[0] % group[1], i / group[0] / group[1]};
        for (int d = 0; d < 3; d++) {
            p.threadgroups_per_grid[d] = grid[d], p.threads_per_threadgroup[d] = group[d];
            p.threads_per_grid[d] = grid[d] * group[d], p.thread_position_in_threadgroup[d] = at[d];
        }
        p.simdgroup_index_in_threadgroup[0] = i / lanes, p.thread_index_in_simdgroup[0] = i % lanes;
        p.quadgroup_index_in_threadgroup[0] = i / 4, p.thread_index_in_quadgroup[0] = i % 4;
        p.thread_index_in_threadgroup[0] = i;
        p.simdgroups_per_threadgroup[0] = (threads + lanes - 1) / lanes, p.threads_per_simdgroup[0] = lanes;
    }
    for (uint32_t z = 0; z < grid[2]; z++)
        for (uint32_t y = 0; y < grid[1]; y++)
            for (uint32_t x = 0; x < grid[0]; x++) {
                const uint32_t at[3] = {x, y, z};
                for (unsigned i = 0; i < threads; i++)
                    for (int d = 0; d < 3; d++) {
                        Position& p = fibers[i].position;
                        p.threadgroup_position_in_grid[d] = at[d];
                        p.thread_position_in_grid[d] = at[d] * group[d] + p.thread_position_in_threadgroup[d];
                    }
                run_threadgroup(threads);
            }
#if defined(__x86_64__)
    _mm_setcsr(before);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"(before));
#endif
}
}
