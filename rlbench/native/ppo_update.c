// Updates of PPO on a policy over sets of actions, on one core: forward, loss, backward, clipping, Adam, one minibatch after
// another. A minibatch is taken through all of it a block of rows at a time; its rows are gathered from where they were collected.

#include "policy_actions.h"

struct ppo {  // kept in step with Job in policy.py
    const struct policy *policy;
    float *parameters, *gradient, *moment1, *moment2, *work;
    const float *obs, *log_prob, *value, *advantage, *target;
    const int64_t *ids, *offsets, *choice;
    int64_t obs_stride, most, norm_adv, clip_vloss, step;
    double learning_rate, beta1, beta2;
    float eps, max_norm, clip_coef, ent_coef, vf_coef;
};

const int64_t ppo_bytes = sizeof(struct ppo);

enum { LOSS, POLICY_LOSS, VALUE_LOSS, ENTROPY, APPROX_KL, CLIP_FRACTION, RATIO_ERROR, NUMBERS };

struct sums {  // over the samples of a minibatch
    double surrogate, error, entropy, kl, clipped;
    float largest;
};

struct slopes {  // derivatives of the loss
    float log_p, value;
};

int64_t ppo_work_size(const struct policy *p, int64_t most) {
    int64_t outputs = joint_apart(p);
    for (int64_t l = 0; l <= p->layers; l++) outputs += apart(p->widths[l]);
    return scratch_size(p, most) + flipped_size(p) + BLOCK * (outputs + 2 * widest(p));
}

// 0, or 1 + the place of an entry of the order that is no row.
int64_t ppo_check_order(int64_t count, const int64_t *order, int64_t rows) {
    for (int64_t k = 0; k < count; k++)
        if (order[k] < 0 || order[k] >= rows) return 1 + k;
    return 0;
}

struct sample {
    int64_t begin, count, choice;
    float log_prob, value, advantage, target;
};

static inline float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

// The loss of one sample, as losses.ppo_loss has it, added to the sums; its derivatives times the size of the minibatch.
// PyTorch's derivative of the smaller, or larger, of two equal numbers is half that of each.
static struct slopes sample_loss(const struct ppo *ppo, const struct sample *s, float log_p, float entropy, float value, float advantage, struct sums *sums) {
    const float log_ratio = log_p - s->log_prob, ratio = expf(log_ratio), c = ppo->clip_coef, off = fabsf(ratio - 1);
    const float plain = advantage * ratio, clipped = advantage * clamp(ratio, 1 - c, 1 + c);
    struct slopes by = {-plain, 0};
    by.log_p = (clipped < plain) & (ratio < 1 - c || ratio > 1 + c) ? 0 : by.log_p;
    const float wrong = value - s->target;
    float error = wrong * wrong;
    by.value = wrong;
    if (ppo->clip_vloss) {
        const float moved = value - s->value, wrong_then = s->value + clamp(moved, -c, c) - s->target;
        const float other = wrong_then * wrong_then, then = moved < -c || moved > c ? 0 : wrong_then;
        if (other > error) by.value = then;
        if (other == error) by.value = 0.5f * (wrong + then);
        if (other > error || isnan(other)) error = other;
    }
    by.value *= ppo->vf_coef;
    sums->surrogate += clipped < plain || isnan(clipped) ? clipped : plain;
    sums->error += error;
    sums->entropy += entropy;
    sums->kl += ratio - 1 - log_ratio;
    sums->clipped += off > c;
    if (off > sums->largest || isnan(off)) sums->largest = off;
    return by;
}

// What brings advantages to mean 0 and standard deviation 1: (advantage - mean) * scale.
static void normalisation(const struct ppo *ppo, const int64_t *order, int64_t first, int64_t size, float *mean, float *scale) {
    *mean = 0, *scale = 1;
    if (!ppo->norm_adv || size < 2) return;
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < size; k++) sum += ppo->advantage[order ? order[k] : first + k];
    const double middle = sum / size;
    for (int64_t k = 0; k < size; k++) {
        const double off = ppo->advantage[order ? order[k] : first + k] - middle;
        squares += off * off;
    }
    *mean = (float)middle;
    *scale = 1 / ((float)sqrt(squares / (size - 1)) + 1e-8f);
}

// Bring a block's rows together. What is needed of a row lies in many places, which the processor fetches at once if it is asked
// for all of them before any is used.
static void gather(const struct ppo *ppo, const int64_t *order, int64_t first, int64_t rows, float *x, struct sample *samples) {
    const int64_t d = ppo->policy->widths[0];
    for (int64_t i = 0; i < rows; i++) {
        const int64_t row = order ? order[i] : first + i, begin = ppo->offsets[row];
        samples[i] = (struct sample){begin, ppo->offsets[row + 1] - begin, ppo->choice[row], ppo->log_prob[row], ppo->value[row], ppo->advantage[row], ppo->target[row]};
        __builtin_prefetch(ppo->ids + begin);
        __builtin_prefetch(ppo->ids + begin + 8);
        for (int64_t j = 0; j < d; j += WIDE) __builtin_prefetch(ppo->obs + row * ppo->obs_stride + j);
    }
    for (int64_t i = 0; i < rows; i++) memcpy(x + i * apart(d), ppo->obs + (order ? order[i] : first + i) * ppo->obs_stride, sizeof(float) * d);
}

// Gradients of a minibatch's loss, and its sums.
static struct sums gradients(const struct ppo *ppo, const int64_t *order, int64_t first, int64_t size) {
    const struct policy *p = ppo->policy;
    const int64_t d = p->widths[0], step = joint_apart(p);
    const struct scratch scratch = scratch_at(p, ppo->most, ppo->work);
    float *x = ppo->work + scratch_size(p, ppo->most), *free = x + BLOCK * apart(d), value[BLOCK], by_value[BLOCK];
    struct sample samples[BLOCK];
    struct rows at = {.value = value};
    for (int64_t l = 0; l < p->layers; l++) at.out[l] = free, free += BLOCK * apart(p->widths[l + 1]);
    at.joint = free;
    float *slope = at.joint + BLOCK * step, *other = slope + BLOCK * widest(p), *flipped = other + BLOCK * widest(p);
    flip(p, ppo->parameters, flipped);
    memset(ppo->gradient, 0, sizeof(float) * p->size);
    float mean, scale;
    normalisation(ppo, order, first, size, &mean, &scale);
    struct sums sums = {0};
    const float share = 1.0f / size;
    for (int64_t b = 0; b < size; b += BLOCK) {
        const int64_t rows = size - b < BLOCK ? size - b : BLOCK;
        gather(ppo, order ? order + b : NULL, first + b, rows, x, samples);
        net_forward(p, ppo->parameters, rows, x, apart(d), &at);
        for (int64_t i = 0; i < rows; i++) {
            const struct sample *s = samples + i;
            const int64_t *ids = ppo->ids + s->begin;
            scores_of(p, ppo->parameters, ids, s->count, at.joint + i * step, &scratch);
            const float entropy = softmax(&scratch, s->count);
            const struct slopes by = sample_loss(ppo, s, scratch.log_p[s->choice], entropy, value[i], (s->advantage - mean) * scale, &sums);
            by_value[i] = by.value * share;
            actions_backward(p, ppo->parameters, ids, s->count, s->choice, entropy, by.log_p * share, -ppo->ent_coef * share, &scratch, ppo->gradient, slope + i * step);
        }
        net_backward(p, ppo->parameters, rows, x, apart(d), &at, slope, by_value, other, flipped, ppo->gradient);
    }
    finish_actions(p, ppo->parameters, ppo->gradient);
    return sums;
}

static void report(const struct ppo *ppo, const struct sums *sums, int64_t size, float *numbers, int64_t stride) {
    const float policy_loss = -(float)(sums->surrogate / size), value_loss = 0.5f * (float)(sums->error / size), entropy = (float)(sums->entropy / size);
    numbers[LOSS * stride] = policy_loss + ppo->vf_coef * value_loss - ppo->ent_coef * entropy;
    numbers[POLICY_LOSS * stride] = policy_loss;
    numbers[VALUE_LOSS * stride] = value_loss;
    numbers[ENTROPY * stride] = entropy;
    numbers[APPROX_KL * stride] = (float)(sums->kl / size);
    numbers[CLIP_FRACTION * stride] = (float)(sums->clipped / size);
    numbers[RATIO_ERROR * stride] = sums->largest;
}

static float norm_of(const float *x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i += 256) {
        vec part = {0};
        for (int64_t j = i; j < i + 256 && j < count; j += WIDE) part += load(x + j) * load(x + j);
        float lanes[WIDE];
        store(lanes, part);
        sum += total(lanes);
    }
    return (float)sqrt(sum);
}

// Adam (Kingma & Ba, 2015), bias-corrected, in the form of torch.optim.Adam.
static void adam(const struct ppo *ppo, float scale) {
    const float rate = (float)(ppo->learning_rate / (1 - pow(ppo->beta1, (double)ppo->step)));
    const float correction = (float)(1 / sqrt(1 - pow(ppo->beta2, (double)ppo->step)));
    float *restrict p = ppo->parameters, *restrict m = ppo->moment1, *restrict v = ppo->moment2;
    const float *restrict g = ppo->gradient;
    const float rest1 = (float)(1 - ppo->beta1), rest2 = (float)(1 - ppo->beta2), beta2 = (float)ppo->beta2, eps = ppo->eps;
    for (int64_t i = 0; i < ppo->policy->size; i++) {
        const float slope = g[i] * scale;
        m[i] += rest1 * (slope - m[i]);
        v[i] = beta2 * v[i] + rest2 * slope * slope;
        p[i] -= rate * m[i] / (sqrtf(v[i]) * correction + eps);
    }
}

static void clear(float *x, int64_t rows, int64_t used, int64_t wide) {
    for (int64_t r = 0; r < rows; r++) memset(x + r * wide + used, 0, sizeof(float) * (wide - used));
}

// After a gradient that is not finite: the padding is zero again, so that weights loaded later find it as they need it.
static void clear_padding(const struct policy *p, float *x) {
    for (int64_t l = 0; l < p->layers; l++) clear(x + p->state[l], p->widths[l] + 1, p->widths[l + 1], padded(p->widths[l + 1]));
    const int64_t h = p->widths[p->layers], wide = joint_width(p);
    clear(x + p->join, h + 1, h, wide);
    clear(x + p->value, 1, h, wide);
    clear(x + p->value + wide, 1, 1, WIDE);
    clear(x + p->action, BITS, h, wide);
    clear(x + p->action + BITS * wide, 1, 0, wide);
    clear(x + p->score, 1, h, wide);
}

// Updates on `minibatches` minibatches: rows order[0] … of the first, then those of the next; NULL: all rows as they lie.
// numbers: (NUMBERS, minibatches).
void ppo_updates(struct ppo *ppo, const int64_t *order, const int64_t *sizes, int64_t minibatches, float *numbers) {
    int64_t first = 0;
    for (int64_t k = 0; k < minibatches; first += sizes[k++]) {
        const struct sums sums = gradients(ppo, order ? order + first : NULL, first, sizes[k]);
        report(ppo, &sums, sizes[k], numbers + k, minibatches);
        const float norm = norm_of(ppo->gradient, ppo->policy->size), scale = ppo->max_norm / (norm + 1e-6f);
        ppo->step++;
        adam(ppo, ppo->max_norm > 0 && !(scale > 1) ? scale : 1);
        if (isfinite(norm)) continue;
        clear_padding(ppo->policy, ppo->parameters);
        clear_padding(ppo->policy, ppo->moment1);
        clear_padding(ppo->policy, ppo->moment2);
    }
}
