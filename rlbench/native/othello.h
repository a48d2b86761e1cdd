// Boards of Reversi as sets of squares: one at a time, and LANES at a time, one to each part of a vector.
//
// Square (row, column) is bit 8 row + column whatever the size. An action is the set of squares that become the mover's, the disc
// placed and those flipped; a pass is 0. Arrays over games have room for whole vectors (PAD games), and hold empty boards there.

#include <stdint.h>
#include <string.h>
#if defined(__AVX512F__) || defined(__BMI2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { LANES = 8 };
#elif defined(__AVX2__)
enum { LANES = 4 };
#else
enum { LANES = 2 };
#endif
enum { PAD = 8 };  // what Python rounds up to

typedef uint64_t lanes __attribute__((vector_size(8 * LANES)));
#define INLINED __attribute__((always_inline))

struct rules {
    int64_t size;
    uint64_t squares, inner;  // all of the board; all but its first and last column
};

static inline struct rules rules_of(int64_t size) {
    const uint64_t row = (1u << size) - 1, middle = row & (row >> 1) & ~1ull;
    struct rules rules = {size, 0, 0};
    for (int64_t r = 0; r < size; r++) {
        rules.squares |= row << 8 * r;
        rules.inner |= middle << 8 * r;
    }
    return rules;
}

// The four discs in the middle; the first player has the square right of and above the middle.
static inline uint64_t first_discs(int64_t size) {
    const int64_t low = size / 2 - 1, high = size / 2;
    return 1ull << (8 * low + high) | 1ull << (8 * high + low);
}

static inline uint64_t second_discs(int64_t size) {
    const int64_t low = size / 2 - 1, high = size / 2;
    return 1ull << (8 * low + low) | 1ull << (8 * high + high);
}

#define BOARD uint64_t
#define NAME(f) f##_one
#define ALL_WHERE(x) (0 - (uint64_t)((x) != 0))
#include "othello_rules.h"
#undef BOARD
#undef NAME
#undef ALL_WHERE
#define BOARD lanes
#define NAME(f) f##_lanes
#define ALL_WHERE(x) ((lanes)((x) != 0))
#include "othello_rules.h"

static inline INLINED lanes load(const uint64_t *from) {
    lanes x;
    memcpy(&x, from, sizeof x);
    return x;
}

static inline INLINED void store(uint64_t *to, lanes x) { memcpy(to, &x, sizeof x); }

static inline INLINED lanes splat(uint64_t x) { return x - (lanes){}; }

static inline INLINED lanes count_lanes(lanes x) {
#if defined(__AVX512VPOPCNTDQ__)
    return (lanes)_mm512_popcnt_epi64((__m512i)x);
#else
    for (int j = 0; j < LANES; j++) x[j] = (uint64_t)__builtin_popcountll(x[j]);
    return x;
#endif
}

// Bit j is set where lane j is not 0.
static inline INLINED unsigned where(lanes x) {
#if defined(__AVX512F__)
    return _mm512_test_epi64_mask((__m512i)x, (__m512i)x);
#else
    unsigned found = 0;
    for (int j = 0; j < LANES; j++) found |= (unsigned)(x[j] != 0) << j;
    return found;
#endif
}

// Lanes whose game is over: nobody has a square to place a disc on. `legal` is that of `mine`.
static inline INLINED unsigned over_lanes(const struct rules *rules, lanes mine, lanes theirs, lanes legal) {
    if (where(legal) == (1u << LANES) - 1) return 0;
    return ~where(legal | legal_lanes(rules, theirs, mine)) & ((1u << LANES) - 1);
}

// The n-th square of a set, counted from 0 upward; nothing of an empty one.
static inline uint64_t nth(uint64_t set, uint64_t n) {
#if defined(__BMI2__)
    return _pdep_u64(1ull << n, set);
#else
    while (n--) set &= set - 1;
    return set & -set;
#endif
}

static inline INLINED lanes nth_lanes(lanes set, lanes n) {
    uint64_t sets[LANES], numbers[LANES];
    store(sets, set);
    store(numbers, n);
    for (int j = 0; j < LANES; j++) sets[j] = nth(sets[j], numbers[j]);
    return load(sets);
}

static inline int64_t lead_of(uint64_t mine, uint64_t theirs) { return __builtin_popcountll(mine) - __builtin_popcountll(theirs); }

// A win is 1, a loss -1; or the lead as a part of the board.
static inline float reward_of(int64_t lead, int64_t size, int64_t in_discs) {
    return in_discs ? (float)lead / (float)(size * size) : (float)((lead > 0) - (lead < 0));
}
