"""n-step returns: rows of one step in, rows that span up to n steps out."""

from __future__ import annotations

from collections import deque

import numpy as np

from rlbench.batch import Collected, Transitions


def one_step(collected: Collected, gamma: float) -> Transitions:
    """The valid rows of a collector's call as transitions of one step."""
    rows = Transitions(
        collected.obs,
        collected.action,
        collected.reward,
        collected.next_obs,
        collected.terminated,
        collected.truncated,
        np.full(len(collected.action), gamma, np.float32),
        collected.next_mask,
    )
    return rows if collected.valid is None else take(rows, collected.valid)


def take(rows: Transitions, which: np.ndarray) -> Transitions:
    return Transitions(*(None if field is None else field[which] for field in rows))


class NStep:
    """Holds each env's last n steps and emits R = Σ γ^k r_k with the state n steps on (Sutton & Barto, 7.1).

    At the end of an episode, terminated or truncated, the steps that are left come out with the shorter sums that they have,
    so that no row crosses an end and none is lost.
    """

    def __init__(self, n: int, gamma: float, num_envs: int) -> None:
        self.n, self.gamma = n, gamma
        self.held: list[deque] = [deque() for _ in range(num_envs)]  # of [obs, action, sum of rewards, steps summed]

    def __call__(self, collected: Collected) -> Transitions | None:
        """Rows that are complete after this step, or None where there are none."""
        out: list[tuple] = []
        for i, held in enumerate(self.held):
            if collected.valid is not None and not collected.valid[i]:
                continue
            reward = float(collected.reward[i])
            for entry in held:
                entry[2] += self.gamma ** entry[3] * reward
                entry[3] += 1
            held.append([collected.obs[i], collected.action[i], reward, 1])
            ended = collected.terminated[i] or collected.truncated[i]
            while held and (ended or held[0][3] == self.n):
                obs, action, total, steps = held.popleft()
                out.append((obs, action, total, i, self.gamma**steps))
        if not out:
            return None
        obs, action, total, env, discount = zip(*out, strict=True)
        which = list(env)
        return Transitions(
            np.stack(obs),
            np.asarray(action, np.int64),
            np.asarray(total, np.float32),
            collected.next_obs[which],
            collected.terminated[which],
            collected.truncated[which],
            np.asarray(discount, np.float32),
            None if collected.next_mask is None else collected.next_mask[which],
        )
