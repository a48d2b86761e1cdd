// The accounts of BatchTrading, N at once, with the arithmetic of portfolio.py in its order of operations. Built without fused
// multiply-adds, so that every account's cash, shares, equity and reward equal the single env's to the last bit.

#include <math.h>
#include <string.h>

#include "env.h"
#include "random.h"

struct trading {  // kept in step with Trading in envs.py
    int64_t num_envs, positions, window, features, flat, episode_length, random_start;  // episode_length 0: to the end
    double initial, floor, clip, buy_cost, sell_cost, borrow_rate;
    struct key reset;
    const double *close;                                   // (T,)
    const float *table;                                    // (T, F)
    const int64_t *first_start, *num_starts, *last_bar;    // (K,)
    const double *position, *buy_divisor, *sell_divisor;   // (P,)
    int64_t *ticker, *bar, *end, *held, *episode;          // (N,)
    double *cash, *shares, *equity, *entry, *exposure;     // (N,); exposure: the target position held
};

static void fill(struct trading *env, int64_t i, int64_t action, double close) {
    const double position = env->position[action], worth = env->shares[i] * close;
    const double missing = position * (env->cash[i] + worth) - worth;
    double cash = env->cash[i], shares = env->shares[i], divisor = 1;
    if (missing > 0) {
        divisor = env->buy_divisor[action];
        const double value = missing / divisor;
        cash -= value;
        shares += value * (1.0 - env->buy_cost) / close;
    } else if (missing < 0) {
        divisor = env->sell_divisor[action];
        const double value = -missing / divisor;
        cash += value * (1.0 - env->sell_cost);
        shares -= value / close;
    }
    const int ruined = divisor <= 0 || cash + shares * close <= 0;
    env->cash[i] = ruined ? 0 : cash;
    env->shares[i] = ruined || position == 0 ? 0 : shares;  // a flat account holds no rounding dust
    env->held[i] = action;
    env->exposure[i] = position;
    env->entry[i] = env->cash[i] + env->shares[i] * close;
}

static void observe(const struct trading *env, int64_t i, float *obs) {
    const int64_t wide = env->window * env->features;
    memcpy(obs, env->table + (env->bar[i] + 1) * env->features - wide, sizeof(float) * wide);
    double profit = env->entry[i] > 0 ? env->equity[i] / env->entry[i] - 1.0 : -1.0;
    profit = profit < -env->clip ? -env->clip : profit > env->clip ? env->clip : profit;
    obs[wide] = (float)env->exposure[i];
    obs[wide + 1] = (float)profit;
}

static void begin(struct trading *env, int64_t i) {
    const int64_t ticker = env->ticker[i];
    int64_t bar = env->first_start[ticker];
    if (env->random_start) bar += to_below(random_bits(env->reset, env->episode[i], i), env->num_starts[ticker]);
    env->bar[i] = bar;
    env->end[i] = env->episode_length ? bar + env->episode_length : env->last_bar[ticker];
    env->cash[i] = env->equity[i] = env->entry[i] = env->initial;
    env->shares[i] = env->exposure[i] = 0;
    env->held[i] = env->flat;
}

int64_t trading_step(struct trading *env, const struct step *out) {
    const int64_t bad = out_of_range(out->action, env->num_envs, env->positions), size = env->window * env->features + 2;
    if (bad) return bad;
    for (int64_t i = 0; i < env->num_envs; i++) {
        if (out->action[i] != env->held[i]) fill(env, i, out->action[i], env->close[env->bar[i]]);
        const double close = env->close[++env->bar[i]], before = env->equity[i];
        if (env->borrow_rate != 0) {
            double borrowed = 0;
            if (env->shares[i] < 0) borrowed -= env->shares[i] * close;
            if (env->cash[i] < 0) borrowed -= env->cash[i];
            env->cash[i] -= env->borrow_rate * borrowed;
        }
        double equity = env->cash[i] + env->shares[i] * close;
        const int ruined = equity <= env->floor;
        if (ruined) {
            equity = env->cash[i] = env->floor;
            env->shares[i] = env->exposure[i] = 0;
        }
        env->equity[i] = equity;
        out->reward[i] = log(equity / before);
        out->terminated[i] = ruined;
        out->truncated[i] = !ruined && env->bar[i] == env->end[i];
        observe(env, i, out->next_obs + i * size);
        if (out->terminated[i] || out->truncated[i]) {
            env->episode[i]++;
            begin(env, i);
            observe(env, i, out->obs + i * size);
        } else {
            memcpy(out->obs + i * size, out->next_obs + i * size, sizeof(float) * size);
        }
    }
    return 0;
}
