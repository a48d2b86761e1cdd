// The best action by minimax on the disc lead, by alpha-beta (Knuth and Moore, 1975). A pass is a ply; a finished game counts as it
// stands. Only what cannot be better is pruned, so that the first of equals is the one that plain minimax finds.

enum { BEYOND = 65 };  // no lead is as large

// The most discs that a move flips, of moves LANES at a time.
static inline int64_t most_flips(const struct rules *rules, uint64_t mine, uint64_t theirs, uint64_t legal) {
    uint64_t most = 0;
    while (legal) {
        uint64_t placed[LANES], counts[LANES];
        for (int j = 0; j < LANES; j++) {
            placed[j] = legal & -legal;
            legal &= legal - 1;
        }
        store(counts, count_lanes(flips_lanes(rules, splat(mine), splat(theirs), load(placed))));
        for (int j = 0; j < LANES; j++) most = counts[j] > most ? counts[j] : most;
    }
    return (int64_t)most;
}

// The lead that the mover can be sure of: exact between alpha and beta, else at most alpha or at least beta.
static int64_t search(const struct rules *rules, uint64_t mine, uint64_t theirs, int64_t depth, int64_t alpha, int64_t beta) {
    if (!depth) return lead_of(mine, theirs);
    uint64_t legal = legal_one(rules, mine, theirs);
    if (!legal) {
        if (!legal_one(rules, theirs, mine)) return lead_of(mine, theirs);
        return -search(rules, theirs, mine, depth - 1, -beta, -alpha);
    }
    if (depth == 1) return lead_of(mine, theirs) + 1 + 2 * most_flips(rules, mine, theirs, legal);
    for (; legal; legal &= legal - 1) {
        const uint64_t placed = legal & -legal, id = placed | flips_one(rules, mine, theirs, placed);
        const int64_t value = -search(rules, theirs & ~id, mine | id, depth - 1, -beta, -alpha);
        if (value >= beta) return value;
        if (value > alpha) alpha = value;
    }
    return alpha;
}

// The first of the best of `count` actions, at least one.
static uint64_t best_of(const struct rules *rules, uint64_t mine, uint64_t theirs, const uint64_t *ids, int64_t count, int64_t depth) {
    int64_t best = -BEYOND;
    uint64_t found = ids[0];
    for (int64_t k = 0; k < count && count > 1; k++) {
        const int64_t value = -search(rules, theirs & ~ids[k], mine | ids[k], depth - 1, -BEYOND, -best);
        if (value > best) {
            best = value;
            found = ids[k];
        }
    }
    return found;
}
