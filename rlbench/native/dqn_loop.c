// Iterations of a DQN on a native env: act, step, store, sample, update, sync the target. What is due when is not decided
// here: the plan says it, one operation after another. Arithmetic and random numbers are those of the Python loop.

#include "dqn_update.c"
#include "env.h"
#include "random.h"

enum { COLLECT, UPDATE, SYNC };
enum { ACTION, REWARD, TERMINATED, TRUNCATED, DISCOUNT, SCALARS };  // of a row of replay, behind obs and next_obs

struct loop {  // kept in step with Loop in dqn_loop.py
    struct job *update, *act;  // act: the same network on num_envs rows
    step_function step;
    void *env;
    struct step out;
    int64_t num_envs, obs_size, num_actions, capacity, n_step;
    double gamma, tau;
    struct key explore, which, replay;
    int64_t head, size, iteration, updates, env_steps, losses, finished;
    float *rows, *obs, *sampled;                             // (capacity, W), (N, D), (B, W)
    int64_t *action, *sampled_action;                        // (N,), (B,)
    float *held_obs;                                         // (N, n, D): the last steps, whose sums are not complete
    double *held_sum;                                        // (N, n)
    int64_t *held_action, *held_steps, *held_first, *held;   // (N, n), (N, n), (N,), (N,)
    float *loss;                                             // one an update of this call
    double *returns, *finished_return;                       // (N,), one an episode that ended in this call
    int64_t *lengths, *finished_length, *finished_step;
};

const int64_t loop_bytes = sizeof(struct loop);

static int64_t best_action(const float *q, int64_t actions) {  // the first of equals; a NaN is the best, as in PyTorch
    int64_t best = 0;
    for (int64_t a = 0; a < actions && !isnan(q[best]); a++)
        if (q[a] > q[best] || isnan(q[a])) best = a;
    return best;
}

static void choose(struct loop *loop, float epsilon) {
    const int64_t n = loop->num_envs, wide = padded(loop->num_actions);
    int64_t greedy = 0;
    for (int64_t i = 0; i < n; i++) {
        const float drawn = (random_bits(loop->explore, loop->iteration, i) >> 8) * 0x1p-24f;
        loop->action[i] = drawn < epsilon ? to_below(random_bits(loop->which, loop->iteration, i), loop->num_actions) : -1;
        greedy += loop->action[i] < 0;
    }
    if (!greedy) return;
    float *out[MOST_LAYERS];
    const float *q = forward(loop->act, loop->act->online, loop->obs, loop->obs_size, loop->act->work, out);
    for (int64_t i = 0; i < n; i++)
        if (loop->action[i] < 0) loop->action[i] = best_action(q + i * wide, loop->num_actions);
}

static void store(struct loop *loop, const float *obs, int64_t action, double reward, int64_t i, double discount) {
    const int64_t d = loop->obs_size, width = 2 * d + SCALARS;
    float *row = loop->rows + loop->head * width, *scalar = row + 2 * d;
    memcpy(row, obs, sizeof(float) * d);
    memcpy(row + d, loop->out.next_obs + i * d, sizeof(float) * d);
    scalar[ACTION] = (float)action;
    scalar[REWARD] = (float)reward;
    scalar[TERMINATED] = loop->out.terminated[i];
    scalar[TRUNCATED] = loop->out.truncated[i];
    scalar[DISCOUNT] = (float)discount;
    loop->head = loop->head + 1 == loop->capacity ? 0 : loop->head + 1;
    if (loop->size < loop->capacity) loop->size++;
}

// Add a step to the sums of env i, and store those that are complete: after n steps, or at the end of the episode.
static void hold(struct loop *loop, int64_t i) {
    const int64_t n = loop->n_step, d = loop->obs_size, base = i * n;
    int64_t first = loop->held_first[i], held = loop->held[i];
    for (int64_t k = 0; k < held; k++) {
        const int64_t at = base + (first + k) % n;
        loop->held_sum[at] += pow(loop->gamma, (double)loop->held_steps[at]++) * loop->out.reward[i];
    }
    const int64_t at = base + (first + held++) % n;
    memcpy(loop->held_obs + at * d, loop->obs + i * d, sizeof(float) * d);
    loop->held_sum[at] = loop->out.reward[i];
    loop->held_action[at] = loop->action[i];
    loop->held_steps[at] = 1;
    const int ended = loop->out.terminated[i] || loop->out.truncated[i];
    while (held && (ended || loop->held_steps[base + first] == n)) {
        const int64_t done = base + first;
        store(loop, loop->held_obs + done * d, loop->held_action[done], loop->held_sum[done], i, pow(loop->gamma, (double)loop->held_steps[done]));
        first = (first + 1) % n;
        held--;
    }
    loop->held_first[i] = first;
    loop->held[i] = held;
}

static void count(struct loop *loop, int64_t i) {
    loop->returns[i] += loop->out.reward[i];
    loop->lengths[i]++;
    if (!loop->out.terminated[i] && !loop->out.truncated[i]) return;
    loop->finished_return[loop->finished] = loop->returns[i];
    loop->finished_length[loop->finished] = loop->lengths[i];
    loop->finished_step[loop->finished++] = loop->env_steps;
    loop->returns[i] = 0;
    loop->lengths[i] = 0;
}

static int64_t collect(struct loop *loop, float epsilon) {
    choose(loop, epsilon);
    const int64_t bad = loop->step(loop->env, &loop->out);
    if (bad) return bad;
    loop->iteration++;
    loop->env_steps += loop->num_envs;
    for (int64_t i = 0; i < loop->num_envs; i++) {
        if (loop->n_step == 1) store(loop, loop->obs + i * loop->obs_size, loop->action[i], loop->out.reward[i], i, loop->gamma);
        else hold(loop, i);
        count(loop, i);
    }
    memcpy(loop->obs, loop->out.obs, sizeof(float) * loop->num_envs * loop->obs_size);
    return 0;
}

static void sample(struct loop *loop) {
    const int64_t d = loop->obs_size, width = 2 * d + SCALARS;
    for (int64_t b = 0; b < loop->update->batch; b++) {
        const float *row = loop->rows + to_below(random_bits(loop->replay, loop->updates, b), loop->size) * width;
        memcpy(loop->sampled + b * width, row, sizeof(float) * width);
        loop->sampled_action[b] = (int64_t)row[2 * d + ACTION];
    }
}

static void update(struct loop *loop, float learning_rate) {
    sample(loop);
    loop->update->learning_rate = learning_rate;
    loop->update->step++;
    loop->updates++;
    loop->loss[loop->losses++] = dqn_update(loop->update);
}

static void sync_target(struct loop *loop, int64_t size) {
    float *target = (float *)loop->update->target;
    const float *online = loop->update->online, tau = (float)loop->tau;
    for (int64_t i = 0; i < size; i++)
        target[i] = tau < 0.5f ? target[i] + tau * (online[i] - target[i]) : online[i] - (online[i] - target[i]) * (1 - tau);
}

// Do the operations in order. Returns 0, or 1 + the index of an environment whose action was out of range.
int64_t dqn_run(struct loop *loop, int64_t operations, const int64_t *operation, const double *argument) {
    int64_t size = 0;
    for (int64_t l = 1; l <= loop->update->layers; l++) size += (loop->update->widths[l - 1] + 1) * padded(loop->update->widths[l]);
    loop->losses = loop->finished = 0;
    for (int64_t k = 0; k < operations; k++) {
        const int64_t bad = operation[k] == COLLECT ? collect(loop, (float)argument[k]) : 0;
        if (bad) return bad;
        if (operation[k] == UPDATE) update(loop, (float)argument[k]);
        if (operation[k] == SYNC) sync_target(loop, size);
    }
    return 0;
}
