// One update of a DQN on a multi-layer perceptron, on one core: targets, loss, gradients, clipping, Adam.
//
// Weights are stored as (inputs, outputs), rows padded to a multiple of 16 floats. Padding is zero and stays zero: its gradients
// are zero, and Adam moves nothing whose gradient always was.
//
// Parameters lie in one array, layer after layer, weights then bias; gradients and Adam's moments likewise.

#include <math.h>
#include <string.h>

#include "matmul.h"

#define MOST_LAYERS 16

struct job {  // kept in step with Job in dqn.py
    int64_t layers, batch, obs_stride, next_stride, mask_stride, double_dqn, huber, step;
    int64_t widths[MOST_LAYERS + 1];
    float learning_rate, beta1, beta2, eps, max_norm;
    const float *obs, *next_obs, *reward, *terminated, *discount, *next_mask, *weight;
    const int64_t *action, *scalar_strides;  // strides of action, reward, terminated, discount
    float *online, *gradient, *moment1, *moment2, *work, *target_out, *error_out;
    const float *target;
};

const int64_t job_bytes = sizeof(struct job);

// Outputs of every layer for the batch: out[l] (batch, padded width of layer l). Returns the last one.
static float *forward(const struct job *job, const float *parameters, const float *input, int64_t stride, float *work, float **out) {
    for (int64_t l = 0; l < job->layers; l++) {
        const int64_t inputs = job->widths[l], wide = padded(job->widths[l + 1]);
        gemm(job->batch, wide, inputs, input, stride, 1, parameters, wide, work, wide, parameters + inputs * wide, l + 1 < job->layers);
        parameters += (inputs + 1) * wide;
        input = out[l] = work;
        stride = wide;
        work += job->batch * wide;
    }
    return out[job->layers - 1];
}

// Values of the next states: the best legal action's, chosen by `chooser`; 0 where nothing is legal.
static float next_value(const struct job *job, int64_t row, const float *values, const float *chooser) {
    const int64_t actions = job->widths[job->layers], wide = padded(actions);
    int64_t best = -1;
    for (int64_t a = 0; a < actions; a++) {
        if (job->next_mask && job->next_mask[row * job->mask_stride + a] == 0) continue;
        if (best < 0 || chooser[row * wide + a] > chooser[row * wide + best] || isnan(chooser[row * wide + a])) best = a;
        if (isnan(chooser[row * wide + best])) break;
    }
    return best < 0 ? 0 : values[row * wide + best];
}

// Loss, and its derivative by the outputs: one entry a row. Targets are handed out.
static float temporal_difference(const struct job *job, const float *q, const float *values, const float *chooser, float *slope) {
    const int64_t wide = padded(job->widths[job->layers]), *stride = job->scalar_strides;
    double loss = 0;
    memset(slope, 0, sizeof(float) * job->batch * wide);
    for (int64_t i = 0; i < job->batch; i++) {
        float target = job->reward[i * stride[1]];
        if (job->terminated[i * stride[2]] == 0) target += job->discount[i * stride[3]] * next_value(job, i, values, chooser);
        job->target_out[i] = target;
        const int64_t at = i * wide + job->action[i * stride[0]];
        const float error = q[at] - target, size = fabsf(error), weight = job->weight ? job->weight[i] : 1;
        job->error_out[i] = error;
        const int linear = job->huber && size >= 1;
        loss += weight * (linear ? size - 0.5f : job->huber ? 0.5f * error * error : error * error);
        slope[at] = weight * (linear ? (error > 0 ? 1.0f : -1.0f) : job->huber ? error : 2 * error) / job->batch;
    }
    return (float)(loss / job->batch);
}

static void transpose(const float *from, int64_t rows, int64_t from_row, int64_t columns, float *to, int64_t to_row) {
    memset(to, 0, sizeof(float) * columns * to_row);
    for (int64_t r0 = 0; r0 < rows; r0 += WIDE)
        for (int64_t c0 = 0; c0 < columns; c0 += WIDE)
            for (int64_t c = c0; c < c0 + WIDE && c < columns; c++)
                for (int64_t r = r0; r < r0 + WIDE && r < rows; r++) to[c * to_row + r] = from[r * from_row + c];
}

// Gradients of all parameters, from the last layer to the first. slope: derivative by the last outputs, overwritten.
static void backward(const struct job *job, float *const *out, float *slope, float *other, float *flipped) {
    int64_t at = 0;
    for (int64_t l = 0; l < job->layers; l++) at += (job->widths[l] + 1) * padded(job->widths[l + 1]);
    for (int64_t l = job->layers - 1; l >= 0; l--) {
        const int64_t inputs = job->widths[l], outputs = job->widths[l + 1], wide = padded(outputs), below = padded(inputs);
        at -= (inputs + 1) * wide;
        const float *x = l ? out[l - 1] : job->obs;
        const int64_t stride = l ? below : job->obs_stride;
        gemm(inputs, wide, job->batch, x, 1, stride, slope, wide, job->gradient + at, wide, NULL, 0);
        float *bias = job->gradient + at + inputs * wide;
        memset(bias, 0, sizeof(float) * wide);
        for (int64_t i = 0; i < job->batch; i++)
            for (int64_t j = 0; j < wide; j++) bias[j] += slope[i * wide + j];
        if (!l) break;
        transpose(job->online + at, inputs, wide, outputs, flipped, below);
        gemm(job->batch, below, outputs, slope, wide, 1, flipped, below, other, below, NULL, 0);
        for (int64_t i = 0; i < job->batch * below; i++) other[i] = x[i] <= 0 ? 0 : other[i];
        float *swap = slope;
        slope = other;
        other = swap;
    }
}

// Scale that brings the norm of all gradients down to max_norm, as torch.nn.utils.clip_grad_norm_ has it.
static float clip(const struct job *job, int64_t count) {
    if (job->max_norm <= 0) return 1;
    double sum = 0;
    for (int64_t i = 0; i < count; i += WIDE) {
        float part = 0;
        for (int64_t j = i; j < i + WIDE; j++) part += job->gradient[j] * job->gradient[j];
        sum += part;
    }
    const float scale = job->max_norm / ((float)sqrt(sum) + 1e-6f);
    return scale > 1 ? 1 : scale;  // a NaN stays one
}

// Adam (Kingma & Ba, 2015), bias-corrected, in the form of torch.optim.Adam.
static void adam(const struct job *job, int64_t count, float scale) {
    const float rate = (float)(job->learning_rate / (1 - pow(job->beta1, (double)job->step)));
    const float root = (float)sqrt(1 - pow(job->beta2, (double)job->step));
    float *restrict p = job->online, *restrict m = job->moment1, *restrict v = job->moment2;
    const float *restrict g = job->gradient;
    const float rest1 = 1 - job->beta1, rest2 = 1 - job->beta2, beta2 = job->beta2, eps = job->eps;
    for (int64_t i = 0; i < count; i++) {
        const float slope = g[i] * scale;
        m[i] += rest1 * (slope - m[i]);
        v[i] = beta2 * v[i] + rest2 * slope * slope;
        p[i] -= rate * m[i] / (sqrtf(v[i]) / root + eps);
    }
}

// Floats of `work` that one update needs.
int64_t dqn_work_size(const struct job *job) {
    int64_t widest = WIDE, flipped = 0, outputs = 0;
    for (int64_t l = 0; l <= job->layers; l++) {
        const int64_t wide = padded(job->widths[l]);
        if (wide > widest) widest = wide;
        if (l) outputs += wide;
        if (l && padded(job->widths[l - 1]) * job->widths[l] > flipped) flipped = padded(job->widths[l - 1]) * job->widths[l];
    }
    return job->batch * (3 * outputs + 2 * widest) + flipped;
}

float dqn_update(const struct job *job) {
    float *out[MOST_LAYERS], *unused[MOST_LAYERS], *work = job->work;
    int64_t outputs = 0, widest = WIDE, count = 0;
    for (int64_t l = 0; l <= job->layers; l++) {
        const int64_t wide = padded(job->widths[l]);
        if (wide > widest) widest = wide;
        if (l) outputs += wide, count += (job->widths[l - 1] + 1) * wide;
    }
    const int64_t part = job->batch * outputs;
    const float *values = forward(job, job->target, job->next_obs, job->next_stride, work, unused);
    const float *chooser = job->double_dqn ? forward(job, job->online, job->next_obs, job->next_stride, work + part, unused) : values;
    const float *q = forward(job, job->online, job->obs, job->obs_stride, work + 2 * part, out);
    float *slope = work + 3 * part, *other = slope + job->batch * widest;
    const float loss = temporal_difference(job, q, values, chooser, slope);
    backward(job, out, slope, other, other + job->batch * widest);
    adam(job, count, clip(job, count));
    return loss;
}
