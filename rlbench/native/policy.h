// A policy over sets of actions, on one core: the network of the state, forward and backward, a block of rows at a time, so that
// what one step leaves for the next is still in the cache.
//
// Parameters lie in one vector. Weights are (inputs, outputs), rows padded to whole vectors, each followed by its bias. Padding is
// zero and stays zero. The action's weights are one row a bit, and a row of zeros behind them, for a bit that is not there.

#include <math.h>
#include <string.h>

#include "matmul.h"

#define MOST_LAYERS 16
#define BITS 64
#define BLOCK 128  // rows that are taken through all layers at once; at most DEEP

struct policy {  // kept in step with Shape in policy.py
    int64_t layers, widths[MOST_LAYERS + 1];                               // D, then each hidden width; the last is H
    int64_t state[MOST_LAYERS], join, value, action, score, size;          // where each begins in the vector of parameters
};

struct rows {  // what is known of a block of states
    float *out[MOST_LAYERS];  // (rows, apart(width)) of every layer of the state network
    float *joint, *value;     // (rows, apart(H)), (rows,)
};

// From one row of a block to the next. A vector more than padding asks for: rows a power of two apart would share few places in
// the cache, and a walk down a column would find none of them again.
static int64_t apart(int64_t width) { return padded(width) + WIDE; }

static int64_t joint_width(const struct policy *p) { return padded(p->widths[p->layers]); }

static int64_t joint_apart(const struct policy *p) { return apart(p->widths[p->layers]); }

static int64_t widest(const struct policy *p) {
    int64_t most = 2 * WIDE;
    for (int64_t l = 0; l <= p->layers; l++)
        if (apart(p->widths[l]) > most) most = apart(p->widths[l]);
    return most;
}

static inline __attribute__((always_inline)) vec load(const float *from) { return *(const vec *)from; }
static inline __attribute__((always_inline)) void store(float *to, vec x) { *(vec *)to = x; }
static inline __attribute__((always_inline)) vec where(ivec mask, vec x, vec y) { return (vec)(((ivec)x & mask) | ((ivec)y & ~mask)); }

typedef float half __attribute__((vector_size(2 * WIDE), aligned(4), may_alias));
typedef int32_t halves __attribute__((vector_size(2 * WIDE)));

// The sum of the WIDE numbers of a vector that was stored.
static inline __attribute__((always_inline)) float total(const float *lanes) {
    half x = *(const half *)lanes + *(const half *)(lanes + WIDE / 2);
    x += __builtin_shuffle(x, (halves){4, 5, 6, 7, 0, 1, 2, 3});
    x += __builtin_shuffle(x, (halves){2, 3, 0, 1, 6, 7, 4, 5});
    return x[0] + x[1];
}

static inline __attribute__((always_inline)) half larger(half x, half y) {
    const halves mask = x > y;
    return (half)(((halves)x & mask) | ((halves)y & ~mask));
}

// The largest of them.
static inline __attribute__((always_inline)) float greatest(const float *lanes) {
    half x = larger(*(const half *)lanes, *(const half *)(lanes + WIDE / 2));
    x = larger(x, __builtin_shuffle(x, (halves){4, 5, 6, 7, 0, 1, 2, 3}));
    x = larger(x, __builtin_shuffle(x, (halves){2, 3, 0, 1, 6, 7, 4, 5}));
    return x[0] > x[1] ? x[0] : x[1];
}

static float dot(const float *x, const float *y, int64_t n) {
    vec sum = {0};
    for (int64_t j = 0; j < n; j += WIDE) sum += load(x + j) * load(y + j);
    float lanes[WIDE];
    store(lanes, sum);
    return total(lanes);
}

// c (m, n) += a (m, depth) times b (depth, n). n is a multiple of WIDE.
static void add_product(int64_t m, int64_t n, int64_t depth, const float *a, int64_t a_row, int64_t a_col, const float *b, int64_t b_row, float *c, int64_t c_row) {
    for (int64_t k = 0; k < depth; k += DEEP) {
        const int64_t part = depth - k < DEEP ? depth - k : DEEP;
        const float *left = a + k * a_col, *right = b + k * b_row;
        int64_t j = 0;
        for (; j + 2 * WIDE <= n; j += 2 * WIDE) column(2, m, part, left, a_row, a_col, right + j, b_row, c + j, c_row, NULL, 0, 0);
        if (j < n) column(1, m, part, left, a_row, a_col, right + j, b_row, c + j, c_row, NULL, 0, 0);
    }
}

static void net_forward(const struct policy *p, const float *w, int64_t rows, const float *x, int64_t stride, const struct rows *to) {
    for (int64_t l = 0; l < p->layers; l++) {
        const int64_t inputs = p->widths[l], wide = padded(p->widths[l + 1]), step = apart(p->widths[l + 1]);
        const float *weights = w + p->state[l];
        gemm(rows, wide, inputs, x, stride, 1, weights, wide, to->out[l], step, weights + inputs * wide, 1);
        x = to->out[l];
        stride = step;
    }
    const int64_t h = p->widths[p->layers], wide = padded(h);
    gemm(rows, wide, h, x, stride, 1, w + p->join, wide, to->joint, stride, w + p->join + h * wide, 0);
    for (int64_t i = 0; i < rows; i++) to->value[i] = dot(x + i * stride, w + p->value, wide) + w[p->value + wide];
}

static void transpose(const float *from, int64_t rows, int64_t from_row, int64_t columns, float *to, int64_t to_row) {
    memset(to, 0, sizeof(float) * columns * to_row);
    for (int64_t r0 = 0; r0 < rows; r0 += WIDE)
        for (int64_t c0 = 0; c0 < columns; c0 += WIDE)
            for (int64_t c = c0; c < c0 + WIDE && c < columns; c++)
                for (int64_t r = r0; r < r0 + WIDE && r < rows; r++) to[c * to_row + r] = from[r * from_row + c];
}

// Floats of the transposed weights of every layer but the first, which has nothing below it.
static int64_t flipped_size(const struct policy *p) {
    int64_t size = p->widths[p->layers] * joint_apart(p);
    for (int64_t l = 1; l < p->layers; l++) size += p->widths[l + 1] * apart(p->widths[l]);
    return size;
}

static void flip(const struct policy *p, const float *w, float *flipped) {
    const int64_t h = p->widths[p->layers];
    transpose(w + p->join, h, padded(h), h, flipped, apart(h));
    flipped += h * apart(h);
    for (int64_t l = p->layers - 1; l > 0; l--) {
        const int64_t inputs = p->widths[l], outputs = p->widths[l + 1];
        transpose(w + p->state[l], inputs, padded(outputs), outputs, flipped, apart(inputs));
        flipped += outputs * apart(inputs);
    }
}

static void through_relu(int64_t rows, int64_t wide, int64_t step, const float *out, float *slope) {
    for (int64_t i = 0; i < rows * step; i += step)
        for (int64_t j = i; j < i + wide; j += WIDE) store(slope + j, (vec)((ivec)load(slope + j) & ~(load(out + j) <= 0)));
}

// Add the gradients of a layer's weights and bias: x (rows, inputs), slope (rows, wide).
static void layer_gradient(int64_t rows, int64_t inputs, int64_t wide, const float *x, int64_t stride, const float *slope, int64_t step, float *gradient) {
    static const float one = 1;
    add_product(inputs, wide, rows, x, 1, stride, slope, step, gradient, wide);
    add_product(1, wide, rows, &one, 0, 0, slope, step, gradient + inputs * wide, wide);
}

// Add the gradients of the state network. at: what the block's forward pass left. slope: derivatives by `joint` (rows, apart(H)),
// overwritten; by_value: by the values (rows,). other: as large as slope of the widest layer. flipped: by `flip`.
static void net_backward(const struct policy *p, const float *w, int64_t rows, const float *x, int64_t stride, const struct rows *at,
        float *slope, const float *by_value, float *other, const float *flipped, float *gradient) {
    const int64_t h = p->widths[p->layers], wide = padded(h), step = apart(h);
    const float *top = at->out[p->layers - 1];
    layer_gradient(rows, h, wide, top, step, slope, step, gradient + p->join);
    add_product(1, wide, rows, by_value, rows, 1, top, step, gradient + p->value, wide);
    for (int64_t i = 0; i < rows; i++) {
        gradient[p->value + wide] += by_value[i];
        const vec g = spread(by_value[i]);
        for (int64_t j = 0; j < wide; j += WIDE) store(other + i * step + j, g * load(w + p->value + j));
    }
    add_product(rows, wide, h, slope, step, 1, flipped, step, other, step);
    flipped += h * step;
    for (int64_t l = p->layers - 1; l >= 0; l--) {
        float *swap = slope;
        slope = other;
        other = swap;
        const int64_t inputs = p->widths[l], outputs = p->widths[l + 1], below = padded(inputs);
        through_relu(rows, padded(outputs), apart(outputs), at->out[l], slope);
        layer_gradient(rows, inputs, padded(outputs), l ? at->out[l - 1] : x, l ? apart(inputs) : stride, slope, apart(outputs), gradient + p->state[l]);
        if (!l) break;
        gemm(rows, below, outputs, slope, apart(outputs), 1, flipped, apart(inputs), other, apart(inputs), NULL, 0);
        flipped += outputs * apart(inputs);
    }
}
