// N games of Reversi in one call: the actions that are taken, an opponent's replies, restarts, features, and the legal actions that
// follow. The same episodes as the game in plain Python and the one of tensors. Games are stepped LANES at a time without branches;
// those that have ended, which are few, come one by one.

#include "othello.h"
#include "othello_pack.h"
#include "othello_best.h"
#include "random.h"

enum { NOBODY = 0, RANDOM = -1 };  // opponents; from 1 on the depth of a search. Flipping the most discs is depth 1.
enum { DRAWS = 64 };               // of an episode: more than a game has moves of one player, or than an opening may have
enum { LENGTH = DRAWS - 1 };        // the draw that says how long an opening is

struct othello {  // kept in step with Othello in othello.py
    int64_t num_games, size, in_discs, least_opening_plies, opening_plies, opponent;
    struct key opening, reply;
    uint64_t *mine, *theirs, *legal, *ids;  // (P,): N games and the padding; legal: squares
    int64_t *episode, *replies;             // (P,)
};

struct turn {  // what a step gives; kept in step with Turn in othello.py
    float *obs, *next_obs;  // (N, 2 size²): where to act next; where the step led
    float *reward;          // (N,)
    uint8_t *terminated;    // (N,)
    int64_t *offsets;       // (N + 1,): where each game's legal ids begin
};

const int64_t othello_bytes = sizeof(struct othello), turn_bytes = sizeof(struct turn);

// The first game whose action is not one of its legal ones, counted from 1; 0 where there is none.
static int64_t illegal(const struct rules *rules, const struct othello *env) {
    for (int64_t i = 0; i < env->num_games; i += LANES) {
        const lanes mine = load(env->mine + i), theirs = load(env->theirs + i), legal = load(env->legal + i), id = load(env->ids + i);
        const lanes placed = id & ~theirs, none = (lanes)(placed == 0);
        lanes wrong = id ^ (placed | flips_lanes(rules, mine, theirs, placed));
        wrong |= (placed & (placed - 1)) | (placed & ~legal) | (none & legal);
        const unsigned found = where(wrong);
        if (found) return i + __builtin_ctz(found) + 1;
    }
    return 0;
}

static uint64_t best_action(const struct rules *rules, uint64_t mine, uint64_t theirs, uint64_t legal, int64_t depth) {
    uint64_t ids[MOST_ACTIONS];
    pack_ids(rules, &mine, &theirs, &legal, 1, ids);
    return best_of(rules, mine, theirs, ids, __builtin_popcountll(legal) + !legal, depth);
}

// What the opponent plays in games i, i + 1 ...; 0 in those that are over.
static inline INLINED lanes replies(const struct rules *rules, const struct othello *env, int64_t i, lanes mine, lanes theirs, lanes legal,
                                    unsigned over) {
    uint64_t ids[LANES] = {0};
    if (env->opponent == RANDOM) {
        for (int j = 0; j < LANES; j++) ids[j] = random_bits(env->reply, env->episode[i + j] * DRAWS + env->replies[i + j], i + j);
        const lanes placed = nth_lanes(legal, (load(ids) * count_lanes(legal)) >> 32);
        return placed | flips_lanes(rules, mine, theirs, placed);
    }
    for (int j = 0; j < LANES; j++)
        if (!(over >> j & 1)) ids[j] = best_action(rules, mine[j], theirs[j], legal[j], env->opponent);
    return load(ids);
}

static void play_one(const struct rules *rules, struct othello *env, int64_t i, uint64_t id) {
    const uint64_t mine = env->theirs[i] & ~id, theirs = env->mine[i] | id;
    env->mine[i] = mine;
    env->theirs[i] = theirs;
    env->legal[i] = legal_one(rules, mine, theirs);
}

static int is_over(const struct rules *rules, const struct othello *env, int64_t i) {
    return !env->legal[i] && !legal_one(rules, env->theirs[i], env->mine[i]);
}

static uint64_t drawn(const struct rules *rules, const struct othello *env, int64_t i, struct key key, int64_t number) {
    const uint64_t legal = env->legal[i];
    const uint32_t bits = random_bits(key, env->episode[i] * DRAWS + number, i);
    const uint64_t placed = nth(legal, (uint64_t)to_below(bits, __builtin_popcountll(legal)));
    return placed | flips_one(rules, env->mine[i], env->theirs[i], placed);
}

static void reply_one(const struct rules *rules, struct othello *env, int64_t i) {
    const uint64_t id = env->opponent == RANDOM
                            ? drawn(rules, env, i, env->reply, env->replies[i])
                            : best_action(rules, env->mine[i], env->theirs[i], env->legal[i], env->opponent);
    play_one(rules, env, i, id);
    env->replies[i]++;
}

static void open_one(const struct rules *rules, struct othello *env, int64_t i, int64_t plies) {
    env->mine[i] = first_discs(rules->size);
    env->theirs[i] = second_discs(rules->size);
    env->legal[i] = legal_one(rules, env->mine[i], env->theirs[i]);
    env->replies[i] = 0;
    for (int64_t ply = 0; ply < plies; ply++) {
        play_one(rules, env, i, drawn(rules, env, i, env->opening, ply));
        if (is_over(rules, env, i)) {
            open_one(rules, env, i, 0);  // an opening that ends the game is none
            return;
        }
    }
}

static void begin(const struct rules *rules, struct othello *env, int64_t i) {
    const uint32_t bits = random_bits(env->opening, env->episode[i] * DRAWS + LENGTH, i);
    open_one(rules, env, i, env->least_opening_plies + to_below(bits, env->opening_plies - env->least_opening_plies + 1));
    if (env->opponent == NOBODY || (env->episode[i] + i) % 2 == 0) return;
    reply_one(rules, env, i);
    if (is_over(rules, env, i)) {  // before the agent's first move
        open_one(rules, env, i, 0);
        reply_one(rules, env, i);
    }
}

// Games i, i + 1 ... one step on; returns those that are over.
static inline INLINED unsigned advance(const struct rules *rules, struct othello *env, int64_t i) {
    lanes id = load(env->ids + i);
    lanes mine = load(env->theirs + i) & ~id, theirs = load(env->mine + i) | id, legal = legal_lanes(rules, mine, theirs);
    unsigned over = over_lanes(rules, mine, theirs, legal);
    if (env->opponent != NOBODY) {
        id = replies(rules, env, i, mine, theirs, legal, over);
        const lanes before = mine;
        mine = theirs & ~id;
        theirs = before | id;
        legal = legal_lanes(rules, mine, theirs);
        over = over_lanes(rules, mine, theirs, legal);
        for (int j = 0; j < LANES; j++) env->replies[i + j]++;
    }
    store(env->mine + i, mine);
    store(env->theirs + i, theirs);
    store(env->legal + i, legal);
    return over;
}

static void finish(const struct rules *rules, struct othello *env, const struct turn *out, int64_t i) {
    const int64_t size = rules->size, width = 2 * size * size, lead = lead_of(env->mine[i], env->theirs[i]);
    out->reward[i] = reward_of(env->opponent == NOBODY ? -lead : lead, size, env->in_discs);
    out->terminated[i] = 1;
    write_planes(env->mine[i], env->theirs[i], size, out->next_obs + i * width, NULL);
    env->episode[i]++;
    begin(rules, env, i);
    write_planes(env->mine[i], env->theirs[i], size, out->obs + i * width, NULL);
}

// Legal ids and where each game's begin. Returns how many they are; where there is no room for them, they are not written.
int64_t othello_legal(const struct othello *env, int64_t *offsets, uint64_t *ids, int64_t room) {
    const struct rules rules = rules_of(env->size);
    const int64_t total = write_offsets(env->legal, env->num_games, offsets);
    if (total <= room) pack_ids(&rules, env->mine, env->theirs, env->legal, env->num_games, ids);
    return total;
}

int64_t othello_reset(struct othello *env, const struct turn *out, uint64_t *ids, int64_t room) {
    const struct rules rules = rules_of(env->size);
    for (int64_t i = 0; i < env->num_games; i++) {
        env->episode[i] = 0;
        begin(&rules, env, i);
        write_planes(env->mine[i], env->theirs[i], rules.size, out->obs + i * 2 * rules.size * rules.size, NULL);
    }
    return othello_legal(env, out->offsets, ids, room);
}

// Takes the actions `chosen` (N,). Returns as othello_legal does, or -1 - i where that of game i is not legal: then nothing has been
// stepped.
int64_t othello_step(struct othello *env, const struct turn *out, const uint64_t *chosen, uint64_t *ids, int64_t room) {
    const struct rules rules = rules_of(env->size);
    const int64_t n = env->num_games, width = 2 * rules.size * rules.size;
    memcpy(env->ids, chosen, (size_t)n * sizeof *env->ids);
    const int64_t bad = illegal(&rules, env);
    if (bad) return -bad;
    memset(out->reward, 0, (size_t)n * sizeof *out->reward);
    memset(out->terminated, 0, (size_t)n);
    for (int64_t i = 0; i < n; i += LANES) {
        const unsigned over = advance(&rules, env, i);
        for (int64_t k = i; k < n && k < i + LANES; k++) {
            if (over >> (k - i) & 1)
                finish(&rules, env, out, k);
            else
                write_planes(env->mine[k], env->theirs[k], rules.size, out->next_obs + k * width, out->obs + k * width);
        }
    }
    return othello_legal(env, out->offsets, ids, room);
}
