"""What a reader gave as an environment, and the forms in which a trainer can have it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlbench.batch import Layout
from rlbench.envs.batch import BatchEnv
from rlbench.envs.factories import CopyOf
from rlbench.envs.make import MakeEnv, factory_of, is_single, is_vector
from rlbench.envs.spaces import EnvError, layout_of

MakeBatch = Callable[..., BatchEnv]  # (num_envs, seed, device)
CHANGES_NOTHING = ("PassiveEnvChecker", "OrderEnforcing", "TimeLimit")  # what `gymnasium.make` wraps an env in


@dataclass(frozen=True)
class EnvSource:
    """An environment before it is made.

    Attributes:
        given: as the reader wrote it.
        name: for people.
        make: a factory of fresh single environments; None for a vector env that has none.
        vector: whether a vector env was given, which is stepped as it is.
        batch: (num_envs, seed, device) -> the same environment as a `BatchEnv`; None where there is none.
        trading: the arguments of the `TradingEnv` that it is; None for any other.
        layout: of its observations, where it says.
    """

    given: Any
    name: str
    make: MakeEnv | None
    vector: bool = False
    batch: MakeBatch | None = None
    trading: dict[str, Any] | None = None
    layout: Layout | None = None


def env_source(env: Any) -> EnvSource:
    """Look at an id, a factory, an env or a vector env; one environment of a factory is made, looked at and closed."""
    if is_vector(env):
        return EnvSource(env, type(env).__name__, _factory_or_none(env), vector=True, layout=layout_of(env))
    # An env that is given may not let itself be copied: that is asked of it when a copy is needed.
    make = CopyOf(env) if is_single(env) else factory_of(env)
    probe = env if is_single(env) else make()
    trading = trading_arguments(probe)
    spec = getattr(probe, "spec", None)
    name = spec.id if spec is not None else type(getattr(probe, "unwrapped", probe)).__name__
    source = EnvSource(env, name, make, False, _batch_of(probe, trading), trading, layout_of(probe))
    if probe is not env and hasattr(probe, "close"):
        probe.close()
    return source


def _factory_or_none(env: Any) -> MakeEnv | None:
    try:
        return factory_of(env)
    except EnvError:
        return None


def is_bare(env: Any) -> bool:
    """Whether an env is wrapped in nothing that changes what it gives."""
    while hasattr(env, "env") and env is not getattr(env, "unwrapped", env):
        if type(env).__name__ not in CHANGES_NOTHING:
            return False
        env = env.env
    return True


def trading_arguments(env: Any) -> dict[str, Any] | None:
    """What the `TradingEnv` inside was made with; None for any other env, and for one wrapped in something else."""
    from rlbench.envs.trading import TradingEnv  # needs Gymnasium

    inner = getattr(env, "unwrapped", env)
    kind = type(inner)
    same = kind is TradingEnv or "equals_trading_env" in vars(kind)  # the same numbers, computed otherwise
    return dict(inner.spec.kwargs) if same and is_bare(env) else None


def _batch_of(env: Any, trading: dict[str, Any] | None) -> MakeBatch | None:
    if trading is not None:
        return None if trading["reward"] is not None else _batch_trading(trading)
    if is_cart_pole(env):
        from rlbench.envs.batch_cartpole import BatchCartPole

        return lambda num_envs, seed, device: BatchCartPole(num_envs, device, seed=seed)
    return None


def _batch_trading(arguments: dict[str, Any]) -> MakeBatch:
    from rlbench.envs.batch_trading import BatchTrading

    kept = {name: v for name, v in arguments.items() if name not in ("reward", "render_mode", "seed")}
    return lambda num_envs, seed, device: BatchTrading(num_envs=num_envs, device=device, seed=seed, **kept)


def is_cart_pole(env: Any) -> bool:
    """Whether an env is Gymnasium's CartPole-v1 as `gymnasium.make` gives it."""
    spec = getattr(env, "spec", None)
    known = spec is not None and spec.id == "CartPole-v1" and not spec.kwargs and spec.max_episode_steps == 500
    return known and is_bare(env)
