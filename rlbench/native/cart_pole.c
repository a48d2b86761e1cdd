// Gymnasium's CartPole-v1 (Barto, Sutton & Anderson, 1983), N at once, in the order of operations of BatchCartPole.

#include <math.h>

#include "env.h"
#include "random.h"

struct cart_pole {  // kept in step with CartPole in envs.py
    int64_t num_envs, most_steps;
    struct key reset;
    double *state;            // (N, 4): x, x_dot, theta, theta_dot
    int64_t *steps, *episode; // (N,)
};

const int64_t cart_pole_bytes = sizeof(struct cart_pole);

static void put(const double *state, float *obs) {
    for (int d = 0; d < 4; d++) obs[d] = (float)state[d];
}

static void move(double *s, int64_t action) {
    const double gravity = 9.8, pole = 0.1, total = 0.1 + 1.0, length = 0.5, pole_length = 0.1 * 0.5, tau = 0.02;
    const double force = action == 1 ? 10.0 : -10.0, cosine = cos(s[2]), sine = sin(s[2]);
    const double temp = (force + pole_length * (s[3] * s[3]) * sine) / total;
    const double turn = (gravity * sine - cosine * temp) / (length * (4.0 / 3.0 - pole * (cosine * cosine) / total));
    const double push = temp - pole_length * turn * cosine / total;
    s[0] += tau * s[1];
    s[1] += tau * push;
    s[2] += tau * s[3];
    s[3] += tau * turn;
}

int64_t cart_pole_step(struct cart_pole *env, const struct step *out) {
    const double far = 2.4, steep = 12 * 2 * 3.141592653589793 / 360;
    const int64_t bad = out_of_range(out->action, env->num_envs, 2);
    if (bad) return bad;
    for (int64_t i = 0; i < env->num_envs; i++) {
        double *s = env->state + 4 * i;
        move(s, out->action[i]);
        put(s, out->next_obs + 4 * i);
        out->reward[i] = 1.0;
        out->terminated[i] = s[0] < -far || s[0] > far || s[2] < -steep || s[2] > steep;
        out->truncated[i] = ++env->steps[i] >= env->most_steps;
        if (out->terminated[i] || out->truncated[i]) {
            env->steps[i] = 0;
            env->episode[i]++;
            for (int d = 0; d < 4; d++)
                s[d] = (random_bits(env->reset, env->episode[i], 4 * i + d) >> 8) * 0x1p-24 * 0.1 - 0.05;
        }
        put(s, out->obs + 4 * i);
    }
    return 0;
}
