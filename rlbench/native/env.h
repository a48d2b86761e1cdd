// What the native environments share: N of them step in one call, and one whose episode has ended is restarted in the same call.

#include <stdint.h>

struct step {  // kept in step with Step in envs.py
    const int64_t *action;           // (N,)
    float *obs, *next_obs;           // (N, D): where to act next; where the step led
    double *reward;                  // (N,)
    uint8_t *terminated, *truncated; // (N,)
};

// Returns 0, or 1 + the index of the first environment whose action is out of range: then nothing has been stepped.
typedef int64_t (*step_function)(void *env, const struct step *out);

static inline int64_t out_of_range(const int64_t *action, int64_t num_envs, int64_t actions) {
    for (int64_t i = 0; i < num_envs; i++)
        if (action[i] < 0 || action[i] >= actions) return i + 1;
    return 0;
}
