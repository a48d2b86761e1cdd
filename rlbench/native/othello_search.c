// The best of the actions of N positions, by alpha-beta, in one call.

#include "othello.h"
#include "othello_pack.h"
#include "othello_best.h"

static int is_legal(const struct rules *rules, uint64_t mine, uint64_t theirs, uint64_t legal, uint64_t id) {
    const uint64_t placed = id & ~theirs;
    if (!placed) return !id && !legal;
    return !(placed & (placed - 1)) && (placed & legal) && id == (placed | flips_one(rules, mine, theirs, placed));
}

// Writes one of ids[offsets[i] ... offsets[i + 1] - 1], at least one, for position i. Returns 0, or 1 + the first position of which
// an action is not legal, or that is none: discs of both on one square, or beside the board.
int64_t alpha_beta_ids(const uint64_t *mine, const uint64_t *theirs, const uint64_t *ids, const int64_t *offsets, int64_t n, int64_t size,
                       int64_t depth, uint64_t *out) {
    const struct rules rules = rules_of(size);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t legal = legal_one(&rules, mine[i], theirs[i]);
        int wrong = (mine[i] & theirs[i]) || ((mine[i] | theirs[i]) & ~rules.squares);
        for (int64_t k = offsets[i]; k < offsets[i + 1]; k++) wrong |= !is_legal(&rules, mine[i], theirs[i], legal, ids[k]);
        if (wrong) return i + 1;
        out[i] = best_of(&rules, mine[i], theirs[i], ids + offsets[i], offsets[i + 1] - offsets[i], depth);
    }
    return 0;
}
