// What a network is given of a board: legal actions packed one after another, and planes of floats.

// The actions of a few games, gathered until there are enough for whole vectors.
enum { GATHERED = 512, MOST_ACTIONS = 64 };
struct gathered {
    uint64_t mine[GATHERED + MOST_ACTIONS], theirs[GATHERED + MOST_ACTIONS], placed[GATHERED + MOST_ACTIONS];
    int64_t count;
};

static inline void gather(struct gathered *all, uint64_t mine, uint64_t theirs, uint64_t legal) {
    int64_t k = all->count;
    do {  // once for an empty set: a pass, which places nothing
        all->mine[k] = mine;
        all->theirs[k] = theirs;
        all->placed[k++] = legal & -legal;
        legal &= legal - 1;
    } while (legal);
    all->count = k;
}

static inline int64_t write_ids(const struct rules *rules, struct gathered *all, uint64_t *out) {
    const int64_t count = all->count;
    for (int64_t k = count; k % LANES; k++) all->mine[k] = all->theirs[k] = all->placed[k] = 0;
    for (int64_t k = 0; k < count; k += LANES) {
        const lanes placed = load(all->placed + k);
        store(all->placed + k, placed | flips_lanes(rules, load(all->mine + k), load(all->theirs + k), placed));
    }
    memcpy(out, all->placed, (size_t)count * sizeof *out);
    all->count = 0;
    return count;
}

// Ids of the legal actions of n live games, in ascending order of the squares.
static inline void pack_ids(const struct rules *rules, const uint64_t *mine, const uint64_t *theirs, const uint64_t *legal, int64_t n,
                            uint64_t *out) {
    struct gathered all;
    all.count = 0;
    for (int64_t i = 0; i < n; i++) {
        gather(&all, mine[i], theirs[i], legal[i]);
        if (all.count >= GATHERED) out += write_ids(rules, &all, out);
    }
    write_ids(rules, &all, out);
}

// Where each game's actions begin, (n + 1,); returns how many there are.
static inline int64_t write_offsets(const uint64_t *legal, int64_t n, int64_t *offsets) {
    int64_t total = offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) offsets[i + 1] = total += __builtin_popcountll(legal[i]) + !legal[i];
    return total;
}

typedef int32_t words16 __attribute__((vector_size(64)));
typedef int32_t words4 __attribute__((vector_size(16)));
enum { ONE = 0x3F800000 };  // the bits of 1.0f

// n floats, n a multiple of 4, that are 1 where the bit is set; written to `also` as well where that is given.
static inline INLINED void write_floats(uint64_t bits, int64_t n, float *out, float *also) {
    const words16 place = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    const words4 place4 = {1, 2, 4, 8};
    int64_t k = 0;
    for (; k + 16 <= n; k += 16) {
        const words16 ones = (((int32_t)((bits >> k) & 0xFFFF) & place) != 0) & ONE;
        memcpy(out + k, &ones, sizeof ones);
        if (also) memcpy(also + k, &ones, sizeof ones);
    }
    for (; k < n; k += 4) {
        const words4 ones = (((int32_t)((bits >> k) & 0xF) & place4) != 0) & ONE;
        memcpy(out + k, &ones, sizeof ones);
        if (also) memcpy(also + k, &ones, sizeof ones);
    }
}

// The rows of a smaller board without the gaps between them.
static inline INLINED uint64_t close_up(uint64_t squares, int64_t size) {
    uint64_t closed = 0;
    for (int64_t r = 0; r < size; r++) closed |= ((squares >> 8 * r) & ((1u << size) - 1)) << size * r;
    return closed;
}

// A plane of the mover's discs, then one of the other's, (2 size²,) floats; to two places where `also` is given.
static inline void write_planes(uint64_t mine, uint64_t theirs, int64_t size, float *out, float *also) {
    if (size == 8) {
        write_floats(mine, 64, out, also);
        write_floats(theirs, 64, out + 64, also ? also + 64 : also);
    } else {
        const int64_t n = size * size;
        write_floats(close_up(mine, size), n, out, also);
        write_floats(close_up(theirs, size), n, out + n, also ? also + n : also);
    }
}
