// Matrix products of small networks on one core: a tile of the result stays in vector registers while the inner dimension is
// walked. The right factor has rows padded to a multiple of 16 floats, so that vectors never need a tail.

#include <stddef.h>
#include <stdint.h>

#define WIDE 16        // floats in a vector
#define ROWS 8         // rows of a tile
#define DEEP 256       // inner dimension walked at once: a panel of two vectors then fits the first-level cache

typedef float vec __attribute__((vector_size(4 * WIDE), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(4 * WIDE)));

static int64_t padded(int64_t n) { return (n + WIDE - 1) / WIDE * WIDE; }

static inline __attribute__((always_inline)) vec spread(float x) { return x - (vec){0}; }

static inline __attribute__((always_inline)) void tile(const int rows, const int vectors, int64_t depth, const float *a,
        int64_t a_row, int64_t a_col, const float *b, int64_t b_row, float *c, int64_t c_row, const float *first, int last, int relu) {
    vec sum[ROWS][2];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            sum[r][v] = first ? *(const vec *)(first + v * WIDE) : *(const vec *)(c + r * c_row + v * WIDE);
    for (int64_t k = 0; k < depth; k++) {
        vec right[2];
        for (int v = 0; v < vectors; v++) right[v] = *(const vec *)(b + k * b_row + v * WIDE);
        for (int r = 0; r < rows; r++) {
            const vec left = spread(a[r * a_row + k * a_col]);
            for (int v = 0; v < vectors; v++) sum[r][v] += left * right[v];
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) {
            vec out = sum[r][v];
            if (last && relu) out = (vec)((ivec)out & ~(out <= 0));  // a NaN stays one
            *(vec *)(c + r * c_row + v * WIDE) = out;
        }
}

static inline __attribute__((always_inline)) void column(const int vectors, int64_t m, int64_t depth, const float *a, int64_t a_row,
        int64_t a_col, const float *b, int64_t b_row, float *c, int64_t c_row, const float *first, int last, int relu) {
    int64_t r = 0;
    for (; r + ROWS <= m; r += ROWS) tile(ROWS, vectors, depth, a + r * a_row, a_row, a_col, b, b_row, c + r * c_row, c_row, first, last, relu);
    for (; r + 4 <= m; r += 4) tile(4, vectors, depth, a + r * a_row, a_row, a_col, b, b_row, c + r * c_row, c_row, first, last, relu);
    for (; r < m; r++) tile(1, vectors, depth, a + r * a_row, a_row, a_col, b, b_row, c + r * c_row, c_row, first, last, relu);
}

// c (m, n) = start (n), or 0, in every row, plus a (m, depth) times b (depth, n); then ReLU if asked. n is a multiple of WIDE.
static void gemm(int64_t m, int64_t n, int64_t depth, const float *a, int64_t a_row, int64_t a_col, const float *b, int64_t b_row,
        float *c, int64_t c_row, const float *start, int relu) {
    static const float zeros[2 * WIDE];
    for (int64_t k = 0; k < depth || k == 0; k += DEEP) {
        const int64_t part = depth - k < DEEP ? depth - k : DEEP;
        const int last = k + DEEP >= depth;
        const float *left = a + k * a_col, *right = b + k * b_row;
        int64_t j = 0;
        for (; j + 2 * WIDE <= n; j += 2 * WIDE)
            column(2, m, part, left, a_row, a_col, right + j, b_row, c + j, c_row, k ? NULL : start ? start + j : zeros, last, relu);
        if (j < n) column(1, m, part, left, a_row, a_col, right + j, b_row, c + j, c_row, k ? NULL : start ? start + j : zeros, last, relu);
    }
}
