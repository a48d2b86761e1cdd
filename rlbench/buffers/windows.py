"""Windows of bars as frames: what an observation's window has in common with the one before need not be stored again."""

from __future__ import annotations

import numpy as np

from rlbench.batch import Layout, Transitions
from rlbench.buffers.rows import ReplayError, RowSpec


def refusal(layout: Layout | None, name: str = "the environment") -> str | None:
    """Why windows cannot be gathered from frames, or None where they can."""
    if layout is None:
        return f"{name} does not say that its observations are windows of bars (`layout`); take ring_torch"
    if layout.window < 2:
        return f"a window of {layout.window} bar shares nothing with the next one, so nothing is saved; take ring_torch"
    return None


def checked_layout(spec: RowSpec) -> Layout:
    """The layout of the observations, or a ReplayError where frames cannot be made of them."""
    reason = refusal(spec.layout)
    if reason is not None or spec.layout is None:
        raise ReplayError(f"ring_frames: {reason}.")
    window, features, own = spec.layout
    if window * features + own != spec.obs_size:
        raise ReplayError(
            f"ring_frames: {spec.layout} makes {window * features + own} numbers, and observations have {spec.obs_size}."
        )
    return spec.layout


class Windows:
    """The windows of S steps of N envs, and which of them do not go on where their env's last one ended.

    Compared as bits, so that what is gathered later equals what came in, -0.0 and all.

    Attributes:
        obs, next_obs: (S, N, w * F) float32.
        fresh: (S, N) bool: the window of `obs` is not the env's last one, so that all its bars are new.
    """

    def __init__(self, rows: Transitions, layout: Layout, num_envs: int, last: np.ndarray, started: bool) -> None:
        width, one = layout.window * layout.features, layout.features
        obs, next_obs = (np.ascontiguousarray(o, np.float32) for o in (rows.obs, rows.next_obs))
        shape = (len(obs) // num_envs, num_envs, -1)
        self.obs, self.next_obs = obs.reshape(shape)[:, :, :width], next_obs.reshape(shape)[:, :, :width]
        bits, next_bits = self.obs.view(np.int32), self.next_obs.view(np.int32)
        jumps = bits[:, :, one:] != next_bits[:, :, :-one]  # (S, N, (w - 1) * F)
        if jumps.any():
            step, env, _ = np.argwhere(jumps)[0]
            raise ReplayError(
                f"ring_frames: in row {step * num_envs + env} the window of next_obs is not that of obs moved on by one bar. "
                "Rows of one step of an env are accepted, all envs in order at each step; take ring_torch for any others."
            )
        before = np.concatenate([last.view(np.int32)[None], next_bits[:-1]]) if len(bits) > 1 else last.view(np.int32)
        self.fresh = (bits != before).any(2)
        if not started:
            self.fresh[0] = True
