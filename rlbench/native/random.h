// The counter-based hash of rlbench/random.py: the same 32 bits for the same (seed, purpose, step, index).

#include <stdint.h>

struct key {  // of a seed and a purpose, as `key` gives it
    uint32_t low, high;
};

static inline uint32_t mix32(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    return x ^ (x >> 16);
}

static inline uint32_t random_bits(struct key key, int64_t step, int64_t index) {
    return mix32(mix32((uint32_t)step * 0x9E3779B1u + key.low) ^ mix32((uint32_t)index * 0x85EBCA77u + key.high));
}

static inline int64_t to_below(uint32_t bits, int64_t n) { return (int64_t)(((uint64_t)bits * (uint64_t)n) >> 32); }
