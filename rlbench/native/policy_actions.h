// The actions of one state: scores, softmax, and the way back. An id has few bits set, so that its part of the joint layer is a sum
// of a few rows of the action's weights, and the gradient of these goes to the same few rows. It costs a load and an addition for
// each set bit where a product over all bits costs 64 of both: with all bits set it is no slower either.

#include "policy.h"

struct scratch {    // for the actions of one state
    float *hidden;  // (most, wide): the joint layer behind its ReLU
    float *parts;   // (most, WIDE): lanes whose sum is the score
    float *score, *log_p, *p, *slope;  // (padded most,)
};

static int64_t scratch_size(const struct policy *p, int64_t most) { return most * (joint_width(p) + WIDE) + 4 * padded(most); }

static struct scratch scratch_at(const struct policy *p, int64_t most, float *work) {
    struct scratch s = {.hidden = work, .parts = work + most * joint_width(p)};
    s.score = s.parts + most * WIDE;
    s.log_p = s.score + padded(most);
    s.p = s.log_p + padded(most);
    s.slope = s.p + padded(most);
    return s;
}

#define TOGETHER 2  // rows that are added before asking whether there are more: fewer branches that are hard to foresee

// The row of the lowest bit that is set; the row of zeros if none is.
static inline __attribute__((always_inline)) int64_t lowest(uint64_t bits) { return bits ? __builtin_ctzll(bits) : BITS; }

// The joint layer of `vectors` vectors of every action: hidden is kept, its products with the score's weights are added to parts.
static inline __attribute__((always_inline)) void reach(const int vectors, const int first, const int64_t *ids, int64_t count,
        int64_t wide, const float *joint, const float *rows, const float *score, float *hidden, float *parts) {
    vec own[8], weight[8];
    for (int v = 0; v < vectors; v++) own[v] = load(joint + v * WIDE), weight[v] = load(score + v * WIDE);
    for (int64_t a = 0; a < count; a++) {
        vec z[8];
        for (int v = 0; v < vectors; v++) z[v] = own[v];
        uint64_t bits = ids[a];
        do {
            for (int k = 0; k < TOGETHER; k++, bits &= bits - 1) {
                const float *row = rows + lowest(bits) * wide;
                for (int v = 0; v < vectors; v++) z[v] += load(row + v * WIDE);
            }
        } while (bits);
        vec part = {0};
        for (int v = 0; v < vectors; v++) {
            z[v] = (vec)((ivec)z[v] & ~(z[v] <= 0));  // a NaN stays one
            store(hidden + a * wide + v * WIDE, z[v]);
            part += z[v] * weight[v];
        }
        if (!first) part += load(parts + a * WIDE);
        store(parts + a * WIDE, part);
    }
}

static void scores_of(const struct policy *p, const float *w, const int64_t *ids, int64_t count, const float *joint, const struct scratch *s) {
    const int64_t wide = joint_width(p);
    const float *rows = w + p->action, *score = w + p->score;
    int64_t j = 0;
#define REACH(vectors, first) reach(vectors, first, ids, count, wide, joint + j, rows + j, score + j, s->hidden + j, s->parts)
#define PART(vectors) (j ? REACH(vectors, 0) : REACH(vectors, 1), j += vectors * WIDE)
    while (wide - j >= 8 * WIDE) PART(8);
    if (wide - j >= 4 * WIDE) PART(4);
    if (wide - j >= 2 * WIDE) PART(2);
    if (wide - j >= WIDE) PART(1);
    for (int64_t a = 0; a < count; a++) s->score[a] = total(s->parts + a * WIDE);
}

// exp(x) for x <= 0: 2^n times a series of the remainder, which is below ln 2 / 2, and so exact to a rounding or two. Below the
// smallest normal number it is 0; a NaN stays one.
static inline __attribute__((always_inline)) vec exponential(vec x) {
    const ivec tiny = x < spread(-87.0f);
    x = where(tiny, spread(-87.0f), x);
    const vec shift = spread(0x1.8p23f);  // in a sum with it a number rounds to a whole one, which its lowest bits then hold
    const vec moved = x * 1.44269504f + shift, n = moved - shift;
    const vec r = x - n * 0.693359375f + n * 2.12194440e-4f;  // ln 2 in two parts, the first short enough for exact products
    vec sum = r * (1.0f / 5040) + 1.0f / 720;
    sum = sum * r + 1.0f / 120;
    sum = sum * r + 1.0f / 24;
    sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f;
    sum = sum * r + 1.0f;
    sum = sum * r + 1.0f;
    return (vec)(((ivec)sum + ((ivec)moved << 23)) & ~tiny);
}

// Scores of the actions from `a` on; of lanes behind the last action a number as good as minus infinity.
static inline __attribute__((always_inline)) vec scores_from(const struct scratch *s, int64_t a, int64_t count) {
    const ivec lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return where(lane < (int32_t)(count - a), load(s->score + a), spread(-0x1p120f));
}

// Log-probabilities and probabilities of the actions from their scores; returns the entropy.
static float softmax(const struct scratch *s, int64_t count) {
    vec top = scores_from(s, 0, count), sum = {0}, terms = {0};
    for (int64_t a = WIDE; a < count; a += WIDE) {
        const vec scores = scores_from(s, a, count);
        top = where(scores > top, scores, top);
    }
    float lanes[WIDE];
    store(lanes, top);
    const float largest = greatest(lanes);
    for (int64_t a = 0; a < count; a += WIDE) {
        const vec e = exponential(scores_from(s, a, count) - largest);
        store(s->p + a, e);
        sum += e;
    }
    store(lanes, sum);
    const float whole = total(lanes), rest = logf(whole), share = 1 / whole;
    for (int64_t a = 0; a < count; a += WIDE) {
        const vec log_p = scores_from(s, a, count) - largest - rest, p = load(s->p + a) * share;
        store(s->log_p + a, log_p);
        store(s->p + a, p);
        terms += (vec)((ivec)(p * log_p) & (p != 0));
    }
    store(lanes, terms);
    return 0 - total(lanes);
}

static inline __attribute__((always_inline)) void go_back(const int vectors, const int64_t *ids, int64_t count, int64_t wide,
        const float *hidden, const float *slope, const float *score, float *rows, float *by_score, float *by_joint) {
    vec sum[8], own[8];
    for (int v = 0; v < vectors; v++) sum[v] = (vec){0}, own[v] = load(by_score + v * WIDE);
    for (int64_t a = 0; a < count; a++) {
        const vec g = spread(slope[a]);
        vec alive[8];
        for (int v = 0; v < vectors; v++) {
            const vec z = load(hidden + a * wide + v * WIDE);
            alive[v] = (vec)((ivec)g & ~(z <= 0));
            sum[v] += alive[v];
            own[v] += g * z;
        }
        uint64_t bits = ids[a];
        for (; bits; bits &= bits - 1) {
            float *row = rows + lowest(bits) * wide;
            for (int v = 0; v < vectors; v++) store(row + v * WIDE, load(row + v * WIDE) + alive[v]);
        }
    }
    for (int v = 0; v < vectors; v++) {
        store(by_score + v * WIDE, own[v]);
        store(by_joint + v * WIDE, sum[v] * load(score + v * WIDE));
    }
}

// Add the gradients of the action's and the score's weights, the former without the factor of the score's weights, which
// `finish_actions` puts in for all states at once. by_joint: derivatives by the state's part of the joint layer (wide,).
static void actions_backward(const struct policy *p, const float *w, const int64_t *ids, int64_t count, int64_t choice,
        float entropy, float by_log_p, float by_entropy, const struct scratch *s, float *gradient, float *by_joint) {
    for (int64_t a = 0; a < count; a += WIDE) {
        const vec prob = load(s->p + a);
        store(s->slope + a, -prob * (by_log_p + by_entropy * (load(s->log_p + a) + entropy)));
    }
    s->slope[choice] += by_log_p;
    const int64_t wide = joint_width(p);
    const float *score = w + p->score;
    float *rows = gradient + p->action, *by_score = gradient + p->score;
    int64_t j = 0;
#define BACK(vectors) (go_back(vectors, ids, count, wide, s->hidden + j, s->slope, score + j, rows + j, by_score + j, by_joint + j), j += vectors * WIDE)
    while (wide - j >= 8 * WIDE) BACK(8);
    if (wide - j >= 4 * WIDE) BACK(4);
    if (wide - j >= 2 * WIDE) BACK(2);
    if (wide - j >= WIDE) BACK(1);
}

static void finish_actions(const struct policy *p, const float *w, float *gradient) {
    const int64_t wide = joint_width(p);
    for (int64_t b = 0; b < BITS; b++)
        for (int64_t j = 0; j < wide; j++) gradient[p->action + b * wide + j] *= w[p->score + j];
    memset(gradient + p->action + BITS * wide, 0, sizeof(float) * wide);
}
