"""From what a reader has (an id, a factory, an env, a vector env) to a collector, and to envs for evaluation."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rlbench.envs.factories import ById, CopyOf
from rlbench.envs.spaces import EnvError

if TYPE_CHECKING:
    import torch

    from rlbench.envs.executors import Collector

MakeEnv = Callable[[], Any]


def make_collector(
    env: Any, num_envs: int, seed: int, *, environments: str = "one_by_one", device: str | torch.device = "cpu"
) -> Collector:
    """A collector over `num_envs` environments.

    Args:
        env: an id ("CartPole-v1"), "module:factory", a factory, one `gymnasium.Env`, a `gymnasium.vector.VectorEnv`, or the
            `EnvSource` of one of these.
        environments: how they are stepped, a variant of the slot `environments`. A vector env is stepped as it is.
        device: where a batch env keeps its tensors.

    Raises:
        EnvError: for what is no environment, and for one that cannot be stepped so.
    """
    from rlbench.envs.executors import EXECUTORS, given_vector
    from rlbench.envs.source import EnvSource, env_source  # which needs this file

    source = env if isinstance(env, EnvSource) else env_source(env)
    if source.vector:
        return given_vector(source, num_envs, seed)
    return EXECUTORS[environments](source, num_envs, seed, device)


def factory_of(env: Any) -> MakeEnv:
    """A function that makes a fresh environment like `env`."""
    if isinstance(env, str):
        return _factory_of_name(env)
    if is_vector(env):
        functions, spec = getattr(env, "env_fns", None), getattr(env, "spec", None)
        if functions is None and spec is not None:
            return _factory_of_name(spec.id)
        if functions is None:
            raise EnvError(
                f"{type(env).__name__} cannot be copied for an evaluation: pass eval_env=, a factory of one env."
            )
        return functions[0]
    if is_single(env):
        copies = CopyOf(env)
        copies()  # refused now where it cannot be copied
        return copies
    if callable(env):
        return env
    raise EnvError(f"{env!r} is no environment: accepted are an id, a factory, a gymnasium.Env and a VectorEnv.")


def is_single(env: Any) -> bool:
    return hasattr(env, "step") and hasattr(env, "reset") and not isinstance(env, type) and not is_vector(env)


def is_vector(env: Any) -> bool:
    return hasattr(env, "single_action_space") and hasattr(env, "num_envs") and not isinstance(env, type)


def _factory_of_name(name: str) -> MakeEnv:
    import gymnasium

    if name.startswith("rlbench/"):
        for module in ("trading", "othello_env"):
            importlib.import_module(f"rlbench.envs.{module}")  # registers it
    module, colon, attribute = name.partition(":")
    if colon and module:
        try:
            found = getattr(importlib.import_module(module), attribute, None)
        except ModuleNotFoundError as error:
            raise EnvError(f"env {name!r}: there is no module {error.name!r} to import.") from error
        if callable(found):
            return found
    try:
        return ById(gymnasium.spec(name))
    except gymnasium.error.Error as error:
        raise EnvError(
            f"env {name!r}: {error} Accepted are an id registered with Gymnasium and module:factory."
        ) from error
