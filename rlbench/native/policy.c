// A policy over sets of actions asked about many states in one call: log-probabilities, choices, and what is learnt from.

#include "policy_actions.h"

const int64_t shape_bytes = sizeof(struct policy);

struct part {  // a matrix of parameters: where it lies in the vector, and where it lies now. Kept in step with policy.py
    int64_t at, rows, columns, wide;
    float *data;
    int64_t row, column;  // strides
};

struct states {  // what is asked. Kept in step with States in policy.py
    const float *obs, *parameters;
    int64_t stride, count, most;
    const int64_t *ids, *offsets, *choice;
};

const int64_t part_bytes = sizeof(struct part), states_bytes = sizeof(struct states);

// Where the parameters lie as one vector: where they are now if they are one already, else `own`, to which they are copied.
const float *policy_parameters(int64_t count, const struct part *parts, float *own) {
    const float *base = parts->data - parts->at;
    int64_t k = 0;
    for (; k < count; k++) {
        const struct part *p = parts + k;
        if (p->data != base + p->at || (p->columns > 1 && p->column != 1) || (p->rows > 1 && p->row != p->wide)) break;
    }
    if (k == count) return base;
    for (k = 0; k < count; k++) {
        const struct part *p = parts + k;
        for (int64_t c0 = 0; c0 < p->columns; c0 += WIDE)
            for (int64_t r = 0; r < p->rows; r++)
                for (int64_t c = c0; c < c0 + WIDE && c < p->columns; c++) own[p->at + r * p->wide + c] = p->data[r * p->row + c * p->column];
    }
    return own;
}

// Copy each part of a vector to where it lies elsewhere.
void policy_hand_out(int64_t count, const struct part *parts, const float *vector) {
    for (const struct part *p = parts; p < parts + count; p++)
        for (int64_t r0 = 0; r0 < p->rows; r0 += WIDE)
            for (int64_t c = 0; c < p->columns; c++)
                for (int64_t r = r0; r < r0 + WIDE && r < p->rows; r++) p->data[r * p->row + c * p->column] = vector[p->at + r * p->wide + c];
}

// The largest number of actions of a state. -1 - i: state i has offsets that fall, or no action, or a choice that it does not have.
int64_t policy_check(int64_t states, const int64_t *offsets, int64_t ids, const int64_t *choice) {
    int64_t most = 1;
    if (offsets[0] != 0) return -1;
    for (int64_t i = 0; i < states; i++) {
        const int64_t count = offsets[i + 1] - offsets[i];
        if (count < 1 || offsets[i + 1] > ids) return -1 - i;
        if (choice && (choice[i] < 0 || choice[i] >= count)) return -1 - i;
        if (count > most) most = count;
    }
    return offsets[states] == ids ? most : -1 - states;
}

// Floats of `kept`, which evaluate leaves for gradient, a state.
static int64_t kept_width(const struct policy *p) {
    int64_t width = joint_apart(p);
    for (int64_t l = 1; l <= p->layers; l++) width += apart(p->widths[l]);
    return width;
}

int64_t policy_kept_size(const struct policy *p, int64_t states) { return states * kept_width(p); }

int64_t policy_work_size(const struct policy *p, int64_t most) {
    return scratch_size(p, most) + BLOCK * (kept_width(p) + 3 * widest(p)) + flipped_size(p);
}

// A block's rows in memory for `count` rows, from row `first`.
static struct rows rows_at(const struct policy *p, float *memory, int64_t count, int64_t first, float *value) {
    struct rows rows = {.value = value + first};
    for (int64_t l = 0; l < p->layers; l++) {
        rows.out[l] = memory + first * apart(p->widths[l + 1]);
        memory += count * apart(p->widths[l + 1]);
    }
    rows.joint = memory + first * joint_apart(p);
    return rows;
}

// The first action whose cumulative probability exceeds `uniform`, as segments.pick: in doubles, and never one of probability 0.
static int64_t pick(const struct scratch *s, int64_t count, double uniform) {
    typedef double real __attribute__((may_alias));
    real *sums = (real *)s->parts;  // which have been added up
    double sum = 0;
    for (int64_t a = 0; a < count; a++) sums[a] = sum += exp((double)s->log_p[a]);
    const double target = uniform * sum < sum ? uniform * sum : nextafter(sum, 0);
    int64_t k = 0;
    while (k + 1 < count && !(sums[k] > target)) k++;
    return k;
}

static int64_t block_of(int64_t count, int64_t first) { return count - first < BLOCK ? count - first : BLOCK; }

// Log-probabilities of all actions, unless NULL; or of choices that are drawn.
static void ask(const struct policy *p, const struct states *s, const float *uniform, float *all, int64_t *choice, float *chosen, float *value, float *work) {
    const struct scratch scratch = scratch_at(p, s->most, work);
    float *block = work + scratch_size(p, s->most);
    for (int64_t b = 0; b < s->count; b += BLOCK) {
        const int64_t rows = block_of(s->count, b);
        struct rows to = rows_at(p, block, BLOCK, 0, value + b);
        net_forward(p, s->parameters, rows, s->obs + b * s->stride, s->stride, &to);
        for (int64_t i = 0; i < rows; i++) {
            const int64_t begin = s->offsets[b + i], count = s->offsets[b + i + 1] - begin;
            scores_of(p, s->parameters, s->ids + begin, count, to.joint + i * joint_apart(p), &scratch);
            softmax(&scratch, count);
            if (all) memcpy(all + begin, scratch.log_p, sizeof(float) * count);
            if (!uniform) continue;
            choice[b + i] = pick(&scratch, count, uniform[b + i]);
            chosen[b + i] = scratch.log_p[choice[b + i]];
        }
    }
}

void policy_log_probs(const struct policy *p, const struct states *s, float *log_p, float *value, float *work) {
    ask(p, s, NULL, log_p, NULL, NULL, value, work);
}

void policy_act(const struct policy *p, const struct states *s, const float *uniform, int64_t *choice, float *log_p, float *value, float *work) {
    ask(p, s, uniform, NULL, choice, log_p, value, work);
}

void policy_evaluate(const struct policy *p, const struct states *s, float *log_p, float *entropy, float *value, float *kept, float *work) {
    const struct scratch scratch = scratch_at(p, s->most, work);
    for (int64_t b = 0; b < s->count; b += BLOCK) {
        const int64_t rows = block_of(s->count, b);
        struct rows to = rows_at(p, kept, s->count, b, value);
        net_forward(p, s->parameters, rows, s->obs + b * s->stride, s->stride, &to);
        for (int64_t i = 0; i < rows; i++) {
            const int64_t begin = s->offsets[b + i], count = s->offsets[b + i + 1] - begin;
            scores_of(p, s->parameters, s->ids + begin, count, to.joint + i * joint_apart(p), &scratch);
            entropy[b + i] = softmax(&scratch, count);
            log_p[b + i] = scratch.log_p[s->choice[b + i]];
        }
    }
}

// Gradients of all parameters, from derivatives by what evaluate gave, (count,) each. Scores are computed anew: that is cheaper
// than to write them to memory and to read them back.
void policy_gradient(const struct policy *p, const struct states *s, const float *by_log_p, const float *by_entropy,
        const float *by_value, float *kept, float *gradient, float *work) {
    const struct scratch scratch = scratch_at(p, s->most, work);
    const int64_t step = joint_apart(p), d = p->widths[0];
    float *slope = work + scratch_size(p, s->most), *other = slope + BLOCK * widest(p), *x = other + BLOCK * widest(p), *flipped = x + BLOCK * apart(d);
    flip(p, s->parameters, flipped);
    memset(gradient, 0, sizeof(float) * p->size);
    for (int64_t b = 0; b < s->count; b += BLOCK) {
        const int64_t rows = block_of(s->count, b);
        const struct rows at = rows_at(p, kept, s->count, b, slope);
        for (int64_t i = 0; i < rows; i++) {
            const int64_t k = b + i, begin = s->offsets[k], count = s->offsets[k + 1] - begin;
            scores_of(p, s->parameters, s->ids + begin, count, at.joint + i * step, &scratch);
            const float entropy = softmax(&scratch, count);
            actions_backward(p, s->parameters, s->ids + begin, count, s->choice[k], entropy, by_log_p[k], by_entropy[k], &scratch, gradient, slope + i * step);
        }
        for (int64_t i = 0; i < rows; i++) memcpy(x + i * apart(d), s->obs + (b + i) * s->stride, sizeof(float) * d);
        net_backward(p, s->parameters, rows, x, apart(d), &at, slope, by_value + b, other, flipped, gradient);
    }
    finish_actions(p, s->parameters, gradient);
}
