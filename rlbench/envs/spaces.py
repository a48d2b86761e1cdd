"""What the trainers ask of an environment, and what they say where it is something else."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlbench.batch import Layout


class EnvError(ValueError):
    """An environment that cannot be used; the message says what was found, what is accepted and what to do."""


class EnvSpec(NamedTuple):
    """Sizes of an environment's spaces."""

    obs_shape: tuple[int, ...]
    num_actions: int  # A
    first_action: int  # what the environment calls action 0
    name: str
    layout: Layout | None = None  # of the numbers in an observation, where the environment says

    @property
    def obs_size(self) -> int:  # D
        return int(np.prod(self.obs_shape, dtype=int))


OLD_STYLE = (
    "{name}'s {call} returned {found}, as environments did before Gym 0.26; the trainers take Gymnasium's form. "
    "Wrap it: env = rlbench.envs.OldStyle(env)"
)


def describe_spaces(observation_space: Any, action_space: Any, name: str, layout: Layout | None = None) -> EnvSpec:
    """Sizes of a single environment's spaces, and the layout of its observations where it is known.

    Raises:
        EnvError: for anything but Box observations and Discrete actions.
    """
    kind = type(action_space).__name__
    if kind != "Discrete":
        raise EnvError(
            f"{name} has {kind} actions; the trainers choose among a Discrete number of them. "
            "Discretise them with a gymnasium.ActionWrapper."
        )
    kind = type(observation_space).__name__
    if kind != "Box":
        raise EnvError(
            f"{name} has {kind} observations; the networks take a Box. "
            "Wrap it: env = gymnasium.wrappers.FlattenObservation(env)"
        )
    shape = tuple(observation_space.shape)
    if layout is not None and layout.window * layout.features + layout.own != np.prod(shape, dtype=int):
        layout = None  # a wrapper has changed the observations
    return EnvSpec(shape, int(action_space.n), int(action_space.start), name, layout)


def layout_of(env: Any) -> Layout | None:
    """The `layout` that an environment says its observations have; None where it says nothing."""
    layout = getattr(getattr(env, "unwrapped", env), "layout", None)
    return layout if isinstance(layout, Layout) else None


def reset_env(env: Any, name: str, seed: int | None = None) -> tuple[Any, dict]:
    """`env.reset`, with one sentence for an old-style environment."""
    try:
        result = env.reset() if seed is None else env.reset(seed=seed)
    except TypeError as error:
        if "seed" in str(error):
            raise EnvError(OLD_STYLE.format(name=name, call="reset", found="an error for `seed`")) from error
        raise
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
        raise EnvError(OLD_STYLE.format(name=name, call="reset", found="an observation alone"))
    return result


def mask_of(info: dict, name: str, num_actions: int) -> np.ndarray | None:
    """A copy of `info["action_mask"]` as (A,) bool, or None where there is none."""
    mask = info.get("action_mask")
    if mask is None:
        return None
    mask = np.array(mask, bool)
    if mask.shape != (num_actions,):
        raise EnvError(f"{name}: info['action_mask'] has shape {mask.shape}; accepted is ({num_actions},).")
    return mask
