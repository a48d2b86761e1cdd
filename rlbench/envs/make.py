"""From what a reader has (an id, a factory, an env, a vector env) to a collector, and to envs for evaluation."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from typing import Any

from rlbench.envs.one_by_one import OneByOne
from rlbench.envs.spaces import EnvError
from rlbench.envs.vector import VectorCollector

MakeEnv = Callable[[], Any]


def make_collector(env: Any, num_envs: int, seed: int) -> OneByOne | VectorCollector:
    """A collector over `num_envs` environments.

    Args:
        env: an id ("CartPole-v1"), "module:factory", a factory, one `gymnasium.Env`, or a `gymnasium.vector.VectorEnv`.
    """
    if is_vector(env):
        if num_envs not in (1, env.num_envs):
            raise EnvError(f"num_envs={num_envs}, but the vector env has {env.num_envs}: leave num_envs out.")
        return VectorCollector(env, seed)
    if is_single(env) and num_envs == 1:
        return OneByOne([env], seed)
    return OneByOne(_made(factory_of(env), num_envs, env), seed)


def _made(make: MakeEnv, count: int, env: Any) -> list[Any]:
    """`count` environments of a factory, each its own."""
    envs = [make() for _ in range(count)]
    for made in envs:
        if not is_single(made) or not hasattr(made, "action_space"):
            raise EnvError(f"the factory {env!r} gave {made!r}, which is no environment: return a gymnasium.Env.")
    if len({id(made) for made in envs}) < count:
        raise EnvError(f"the factory {env!r} gave the same environment twice: make a new one at every call.")
    return envs


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
        try:
            copy.deepcopy(env)
        except Exception as error:
            raise EnvError(
                f"{env} cannot be copied ({error}): pass a factory, a function that makes an env."
            ) from error
        return lambda: copy.deepcopy(env)
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
        importlib.import_module("rlbench.envs.trading")  # registers it
    module, colon, attribute = name.partition(":")
    if colon and module:
        try:
            found = getattr(importlib.import_module(module), attribute, None)
        except ModuleNotFoundError as error:
            raise EnvError(f"env {name!r}: there is no module {error.name!r} to import.") from error
        if callable(found):
            return found
    try:
        gymnasium.spec(name)
    except gymnasium.error.Error as error:
        raise EnvError(
            f"env {name!r}: {error} Accepted are an id registered with Gymnasium and module:factory."
        ) from error
    return lambda: gymnasium.make(name)
