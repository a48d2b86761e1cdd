// Reversi with squares for actions and a mask of legal squares for a state: N games in one call, and whole random play in one call.
// Every game starts from the start position, and starts anew in the step that ends it.

#include "othello.h"
#include "othello_pack.h"
#include "random.h"

enum { PASS = 64 };

struct masks {  // kept in step with Masks in othello_masks.py
    int64_t num_games, size;
    uint64_t *mine, *theirs, *legal;  // (P,): N games and the padding; legal: squares
};

struct counts {  // kept in step with Counts in othello_masks.py
    int64_t steps, episodes, passes, actions;  // actions: legal ones, summed over the states in which one was taken
};

const int64_t masks_bytes = sizeof(struct masks), counts_bytes = sizeof(struct counts);

// Place discs in games i, i + 1 ... of n: returns those that are over, and their mover's leads, before they start anew.
static inline INLINED unsigned place(const struct rules *rules, struct masks *games, int64_t i, lanes placed, int64_t *leads) {
    const lanes before = load(games->mine + i), against = load(games->theirs + i);
    const lanes id = placed | flips_lanes(rules, before, against, placed);
    lanes mine = against & ~id, theirs = before | id, legal = legal_lanes(rules, mine, theirs);
    unsigned over = over_lanes(rules, mine, theirs, legal);
    if (over && games->num_games - i < LANES) over &= (1u << (games->num_games - i)) - 1;  // the padding stays empty
    if (over) {
        const uint64_t first = first_discs(rules->size), second = second_discs(rules->size), opens = legal_one(rules, first, second);
        for (int j = 0; j < LANES; j++) {
            if (!(over >> j & 1)) continue;
            if (leads) leads[j] = lead_of(theirs[j], mine[j]);
            mine[j] = first;
            theirs[j] = second;
            legal[j] = opens;
        }
    }
    store(games->mine + i, mine);
    store(games->theirs + i, theirs);
    store(games->legal + i, legal);
    return over;
}

void masks_reset(struct masks *games) {
    const struct rules rules = rules_of(games->size);
    for (int64_t i = 0; i < games->num_games; i++) {
        games->mine[i] = first_discs(rules.size);
        games->theirs[i] = second_discs(rules.size);
        games->legal[i] = legal_one(&rules, games->mine[i], games->theirs[i]);
    }
}

static int may(uint64_t legal, int64_t square) {
    return square == PASS ? !legal : square >= 0 && square < PASS && (legal >> square & 1);
}

// Place discs on squares (N,), 64 to pass; legal (N,) is given out, reward (N,) and terminated (N,). Returns 0, or 1 + the index of
// the first game in which that is not legal: then nothing has been stepped.
int64_t masks_step(struct masks *games, const int64_t *squares, uint64_t *legal, float *reward, uint8_t *terminated) {
    const struct rules rules = rules_of(games->size);
    const int64_t n = games->num_games;
    int64_t bad = 0;
    for (int64_t i = 0; i < n; i++) bad |= !may(games->legal[i], squares[i]);
    for (int64_t i = 0; bad && i < n; i++)
        if (!may(games->legal[i], squares[i])) return i + 1;
    memset(reward, 0, (size_t)n * sizeof *reward);
    memset(terminated, 0, (size_t)n);
    for (int64_t i = 0; i < n; i += LANES) {
        uint64_t placed[LANES] = {0};
        int64_t leads[LANES];
        for (int j = 0; j < LANES && i + j < n; j++) placed[j] = squares[i + j] == PASS ? 0 : 1ull << squares[i + j];
        const unsigned over = place(&rules, games, i, load(placed), leads);
        for (int j = 0; over && j < LANES && i + j < n; j++) {
            if (!(over >> j & 1)) continue;
            reward[i + j] = reward_of(leads[j], rules.size, 0);
            terminated[i + j] = 1;
        }
    }
    memcpy(legal, games->legal, (size_t)n * sizeof *legal);
    return 0;
}

// In step t, game i takes its k-th legal square, k drawn by (t, i). With `ids` and `offsets`, the packed ids are written before each
// step, which is their cost alone: none is read.
void masks_random(struct masks *games, int64_t steps, struct key key, uint64_t *ids, int64_t *offsets, struct counts *counts) {
    const struct rules rules = rules_of(games->size);
    const int64_t n = games->num_games;
    lanes actions = {};
    for (int64_t t = 0; t < steps; t++) {
        if (ids) {
            write_offsets(games->legal, n, offsets);
            pack_ids(&rules, games->mine, games->theirs, games->legal, n, ids);
        }
        for (int64_t i = 0; i < n; i += LANES) {
            const lanes legal = load(games->legal + i), number = count_lanes(legal);
            const unsigned able = where(legal), all = n - i < LANES ? (1u << (n - i)) - 1 : (1u << LANES) - 1;
            uint64_t bits[LANES];
            for (int j = 0; j < LANES; j++) bits[j] = random_bits(key, t, i + j);
            actions += number;
            if (able != all) counts->passes += __builtin_popcount(all & ~able);
            const unsigned over = place(&rules, games, i, nth_lanes(legal, (load(bits) * number) >> 32), NULL);
            if (over) counts->episodes += __builtin_popcount(over);
        }
    }
    for (int j = 0; j < LANES; j++) counts->actions += (int64_t)actions[j];
    counts->actions += counts->passes;
    counts->steps += steps * n;
}
