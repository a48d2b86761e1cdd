"""What a trainer is given, checked before anything is built from it or trained with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from rlbench.config import ConfigError, DQNConfig
from rlbench.envs.make import factory_of
from rlbench.envs.source import EnvSource, is_batch
from rlbench.envs.spaces import EnvError, EnvSpec, describe_spaces
from rlbench.speedups import ChoiceError, Choices
from rlbench.trainers.schedule import warn_without_updates
from rlbench.trainers.takes import check_takes


def checked_choices(
    config: Any, choices: Any, device: torch.device, source: EnvSource, kind: type = DQNConfig
) -> Choices:
    """The Choices that can be used here, plain()'s where None was given.

    Refuses what is no config of that kind, no Choices, or cannot work; warns of a training without an update.
    """
    choices = Choices.plain(device) if choices is None else choices
    if not isinstance(config, kind):
        raise ConfigError(f"config must be a {kind.__name__}, such as rlbench.{kind.__name__}(seed=1), not {config!r}.")
    if not isinstance(choices, Choices):
        raise ChoiceError(f"choices must be a Choices, such as rlbench.Choices.fast(), not {choices!r}.")
    check_takes(config.trainer, source)
    choices = choices.usable(config, device, source)
    choices.check(config.trainer, config, device, source)
    if kind is DQNConfig:
        warn_without_updates(config)
    return choices


def evaluation_factory(env: Any, eval_env: Any, config: Any, collector: Any) -> Callable[[], Any] | None:
    """A factory of evaluation envs; None where nothing is to be evaluated.

    Raises:
        EnvError: where the envs have other spaces than those trained on, or are the very envs trained on.
    """
    if not config.eval_episodes:
        return None
    given = env if eval_env is None else eval_env
    if is_batch(given):
        raise EnvError(
            f"{given.name} has no single environments to evaluate on: pass eval_env=, an id or a factory, or set eval_episodes=0."
        )
    make = factory_of(given)
    if eval_env is not None or callable(env):
        _check_made(make(), collector)
    return make


def _check_made(made: Any, collector: Any) -> None:
    trained_on = collector.envs if isinstance(collector.envs, list) else ()  # a vector env keeps its own to itself
    if any(getattr(made, "unwrapped", made) is getattr(env, "unwrapped", env) for env in trained_on):
        raise EnvError(f"{collector.name}: the factory gave the same environment twice; make a new one at each call.")
    spec: EnvSpec = describe_spaces(made.observation_space, made.action_space, "the evaluation env")
    if spec._replace(name="", layout=None) != collector.spec._replace(name="", layout=None):
        raise EnvError(
            f"the evaluation env has observations of shape {spec.obs_shape} and {spec.num_actions} actions from "
            f"{spec.first_action}; accepted are those of the training env, {collector.spec.obs_shape} and "
            f"{collector.spec.num_actions} from {collector.spec.first_action}."
        )
    made.close()


def check_weights(trainer: Any) -> None:
    """Refuse to train where the networks hold other parameters than those that the trainer was built on.

    Raises:
        ConfigError: updates would go on changing the old ones, which nobody looks at any more.
    """
    found = trainer.parameters()
    same = len(found) == len(trainer.trained) and all(a is b for a, b in zip(found, trainer.trained, strict=True))
    if not same or any(p.dtype != torch.float32 or p.device.type != trainer.device.type for p in found):
        raise ConfigError(
            "the networks do not hold the parameters that are trained any more (load_state_dict(…, assign=True), another module, "
            ".to() or .double() does that): load weights in place, trainer.network.load_state_dict(weights)."
        )


def rows_to_act_on(obs: Any, mask: Any, spec: EnvSpec) -> tuple[np.ndarray, np.ndarray | None, bool]:
    """Observations (N, D) and masks (N, A) or None, of one observation or of many; and whether it is one.

    Raises:
        EnvError: for another shape, and for a state without a legal action.
    """
    shape = spec.obs_shape
    single = np.shape(obs) == shape
    if not single and np.shape(obs)[1:] != shape:
        raise EnvError(
            f"act: observation of shape {np.shape(obs)}; accepted are {shape} and (N, {', '.join(map(str, shape))})."
        )
    rows = np.array(obs, np.float32).reshape(-1, spec.obs_size)
    legal = None if mask is None else np.array(mask, bool).reshape(len(rows), spec.num_actions)
    if legal is not None and not legal.any(axis=1).all():
        raise EnvError(f"act: state {int(np.argmin(legal.any(axis=1)))} has no legal action to choose.")
    return rows, legal, single
