"""What training on recorded games is given, looked at before anything is computed."""

from __future__ import annotations

from typing import Any

import torch

from rlbench.config import ConfigError, PPOConfig
from rlbench.episodes import ORDERS, EpisodeError, Episodes
from rlbench.models.action_scorer import ActionScorer
from rlbench.speedups import ChoiceError, Choices

# Slots of PPO that say how games are played, of which there is nothing to do here.
OF_PLAY = ("games", "environments", "features", "market_io")


def check_fit(model: Any, episodes: Any, config: Any, batch_by: Any) -> None:
    """Refuse what does not go together.

    Raises:
        ConfigError, EpisodeError: naming what was found, what is accepted, and what to do.
    """
    if not isinstance(config, PPOConfig):
        raise ConfigError(f"config must be a PPOConfig, such as rlbench.PPOConfig(seed=1), not {config!r}.")
    if not isinstance(model, ActionScorer):
        raise ConfigError(f"model must be an ActionScorer, a policy over sets of actions, not {type(model).__name__}.")
    if batch_by not in ORDERS:
        raise ConfigError(f"batch_by={batch_by!r} is refused; accepted: {', '.join(ORDERS)}.")
    if not isinstance(episodes, Episodes):
        raise EpisodeError(f"{type(episodes).__name__} are no Episodes: see rlbench.episodes.Episodes.from_lists.")
    if not len(episodes):
        raise EpisodeError("there are no episodes to learn from.")
    takes, has = model.state[0].in_features, episodes.obs.shape[1]
    if takes != has:
        raise EpisodeError(f"{episodes.game}: states have {has} features, and the model takes {takes}.")
    if config.old_log_probs == "behaviour" and not episodes.behaviour:
        raise EpisodeError(
            f"{episodes.game}: old_log_probs='behaviour', but these episodes have no log-probabilities of who played them; "
            "accepted with them: old_log_probs='recomputed'."
        )


def usable_choices(choices: Choices | None, config: PPOConfig, device: torch.device) -> Choices:
    """The Choices that can be used here, plain()'s where None was given.

    Raises:
        ChoiceError: for a slot set explicitly that cannot be used, or that is not.
    """
    choices = Choices.plain(device) if choices is None else choices
    if not isinstance(choices, Choices):
        raise ChoiceError(f"choices must be a Choices, such as rlbench.Choices.fast(), not {choices!r}.")
    for slot in sorted(choices.explicit):
        if slot in OF_PLAY:
            raise ChoiceError(f"{slot}={getattr(choices, slot)!r}: recorded games are not played again; leave it out.")
    if (
        "old_log_probs" in choices.explicit
        and config.old_log_probs == "behaviour"
        and choices.old_log_probs != "stored"
    ):
        raise ChoiceError(
            f"old_log_probs={choices.old_log_probs!r} would be ignored: with old_log_probs='behaviour' in the config those that "
            "were recorded are used; accepted here: stored."
        )
    choices = choices.usable(config, device)
    choices.check("ppo", config, device)
    return choices
