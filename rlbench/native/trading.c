// The accounts of BatchTrading, N at once, with the arithmetic of portfolio.py in its order of operations. Built without fused
// multiply-adds, so that every account's cash, shares, equity and observations equal the single env's to the last bit. Rewards are
// within two units in the last place: the C library's logarithm takes one number at a time, the one here as many as a vector has.
//
// Loops without branches are what the compiler makes vector code of; restarts, which are rare, come after.

#include <math.h>
#include <string.h>

#include "env.h"
#include "random.h"

enum { GOES_ON, TERMINATED, TRUNCATED };

struct trading {  // kept in step with Trading in envs.py
    int64_t num_envs, positions, window, features, flat, episode_length, random_start;  // episode_length 0: to the end
    double initial, floor, clip, buy_cost, sell_cost, borrow_rate;
    struct key reset;
    const double *close;                                   // (T,)
    const float *table;                                    // (T, F)
    const int64_t *first_start, *num_starts, *last_bar;    // (K,)
    const double *position, *buy_divisor, *sell_divisor;   // (P,)
    int64_t *ticker, *bar, *end, *held, *episode;          // (N,)
    int64_t *ended;                                        // (N,): GOES_ON, TERMINATED or TRUNCATED
    double *cash, *shares, *equity, *entry, *exposure;     // (N,); exposure: the target position held
    double *growth, *profit;                               // (N,): equity over that before; over that after the last fill, less 1
};

const int64_t trading_bytes = sizeof(struct trading);

// One bar on: fill, interest, equity.
static void advance(struct trading *env, const int64_t *restrict action) {
    const double *restrict close = env->close, *restrict target = env->position;
    const double *restrict buy_divisor = env->buy_divisor, *restrict sell_divisor = env->sell_divisor;
    int64_t *restrict bar = env->bar, *restrict held = env->held, *restrict end = env->end, *restrict ended = env->ended;
    double *restrict cash = env->cash, *restrict shares = env->shares, *restrict equity = env->equity, *restrict entry = env->entry;
    double *restrict exposure = env->exposure, *restrict growth = env->growth, *restrict profit = env->profit;
    const double buy_rest = 1.0 - env->buy_cost, sell_rest = 1.0 - env->sell_cost, rate = env->borrow_rate, floor = env->floor;
    const double clip = env->clip;
    const int64_t n = env->num_envs;
#pragma GCC ivdep  // no two of these arrays overlap
    for (int64_t i = 0; i < n; i++) {
        const int64_t choice = action[i], now = bar[i];
        const int fills = choice != held[i];
        const double money0 = cash[i], stock0 = shares[i], base0 = entry[i], place0 = exposure[i], equity0 = equity[i];
        const double price = close[now], next = close[now + 1], position = target[choice];
        const double worth = stock0 * price, missing = position * (money0 + worth) - worth;
        const double buying = buy_divisor[choice], selling = sell_divisor[choice];
        const double divisor = missing > 0 ? buying : missing < 0 ? selling : 1;
        const double value = fabs(missing) / divisor, number = (missing > 0 ? value * buy_rest : value) / price;
        const double rest = missing > 0 ? money0 - value : money0 + value * sell_rest;
        const double owned = missing > 0 ? stock0 + number : stock0 - number;
        const double sum = rest + owned * price;  // no number where the divisor is none that can be divided by
        const int spent = (sum < divisor ? sum : divisor) <= 0;
        const double new_cash = spent ? 0 : rest, new_shares = spent | (position == 0) ? 0 : owned;  // flat: no rounding dust
        const double stock = fills ? new_shares : stock0, money = fills ? new_cash : money0;
        const double base = fills ? new_cash + new_shares * price : base0;
        const double owed = (stock < 0 ? 0 - stock * next : 0) - (money < 0 ? money : 0);
        const double left = money - rate * owed, total = left + stock * next;
        const int ruined = total <= floor;
        const double after = ruined ? floor : total, gain = base > 0 ? after / base - 1 : -1;
        cash[i] = ruined ? floor : left;
        shares[i] = ruined ? 0 : stock;
        exposure[i] = ruined ? 0 : fills ? position : place0;
        entry[i] = base;
        held[i] = choice;
        bar[i] = now + 1;
        growth[i] = after / equity0;
        equity[i] = after;
        profit[i] = gain < -clip ? -clip : gain > clip ? clip : gain;
        ended[i] = ruined ? TERMINATED : now + 1 == end[i] ? TRUNCATED : GOES_ON;
    }
}

static int near(double x) { return fabs(x - 1) < 0.25; }

// With f = x - 1, which is exact near 1, and s = f / (2 + f): log x = 2 atanh s, a series in s, summed so that f leads (as fdlibm does).
static void logarithms(const double *restrict x, double *restrict out, int64_t n) {
    int far = 0;
    for (int64_t i = 0; i < n; i++) {
        const double f = x[i] - 1, s = f / (2 + f), z = s * s, half = 0.5 * f * f;
        const double tail = 2.0 / 11 + z * (2.0 / 13 + z * (2.0 / 15 + z * (2.0 / 17 + z * (2.0 / 19))));
        const double series = z * (2.0 / 3 + z * (2.0 / 5 + z * (2.0 / 7 + z * (2.0 / 9 + z * tail))));
        out[i] = f - (half - s * (half + series));
        far |= !near(x[i]);
    }
    for (int64_t i = 0; far && i < n; i++)
        if (!near(x[i])) out[i] = log(x[i]);
}

// Rows are short: two overlapping pieces are quicker than a call that first looks how long they are.
static void copy(float *to, const float *from, int64_t n) {
    if (n < 8) {
        for (int64_t k = 0; k < n; k++) to[k] = from[k];
        return;
    }
    for (int64_t k = 0; k + 8 <= n; k += 8) memcpy(to + k, from + k, 8 * sizeof(float));
    memcpy(to + n - 8, from + n - 8, 8 * sizeof(float));
}

static void observe(const struct trading *env, int64_t i, float *obs) {
    const int64_t wide = env->window * env->features;
    copy(obs, env->table + (env->bar[i] + 1) * env->features - wide, wide);
    obs[wide] = (float)env->exposure[i];
    obs[wide + 1] = (float)env->profit[i];
}

static void begin(struct trading *env, int64_t i) {
    const int64_t ticker = env->ticker[i];
    env->episode[i]++;
    int64_t bar = env->first_start[ticker];
    if (env->random_start) bar += to_below(random_bits(env->reset, env->episode[i], i), env->num_starts[ticker]);
    env->bar[i] = bar;
    env->end[i] = env->episode_length ? bar + env->episode_length : env->last_bar[ticker];
    env->cash[i] = env->equity[i] = env->entry[i] = env->initial;
    env->shares[i] = env->exposure[i] = env->profit[i] = 0;
    env->held[i] = env->flat;
}

int64_t trading_step(struct trading *env, const struct step *out) {
    const int64_t n = env->num_envs, size = env->window * env->features + 2;
    const int64_t bad = out_of_range(out->action, n, env->positions);
    if (bad) return bad;
    advance(env, out->action);
    logarithms(env->growth, out->reward, n);
    for (int64_t i = 0; i < n; i++) {
        observe(env, i, out->next_obs + i * size);
        out->terminated[i] = env->ended[i] == TERMINATED;
        out->truncated[i] = env->ended[i] == TRUNCATED;
        if (env->ended[i]) begin(env, i);
        observe(env, i, out->obs + i * size);
    }
    return 0;
}
