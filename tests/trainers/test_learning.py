"""What whole trainings reach, where the answer is known. Slow: minutes each."""

import numpy as np
import pytest

from rlbench import Choices, DQNConfig, simulate
from rlbench.envs import TradingEnv, best_causal_policy
from rlbench.trainers.dqn import DQN
from rlbench.trainers.evaluate import evaluate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_cartpole_is_solved(seed):
    config = DQNConfig.preset("cartpole", seed=seed)
    history = DQN(config, Choices.fast(), env="CartPole-v1").train(progress=False)
    assert history.env_steps == 100_000 and history.eval_episodes == 100
    assert history.mean_return >= 475


def trained_and_test_envs(market, seed, fee):
    parts = market.split()
    train, validation, test = (lambda part=part: TradingEnv(part, fee=fee) for part in parts)
    config = DQNConfig.preset("trading", seed=seed)
    trainer = DQN(config, Choices.fast(), env=train, eval_env=validation)
    trainer.train(progress=False)
    return trainer, test


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_mean_reverting_market_gives_nine_tenths_of_the_best_causal_policy(seed):
    market = simulate.ornstein_uhlenbeck(60_000, seed=0)  # fewer bars, and chance in them weighs too much
    trainer, test = trained_and_test_envs(market, seed, fee=1e-4)
    best = best_causal_policy(market.process, (-1, 0, 1), 1e-4).from_observation(market)
    reached, possible = (np.mean(evaluate(policy, test, 100, seed=7)) for policy in (trainer.greedy, best))
    assert possible > 0 and reached >= 0.9 * possible


def test_nothing_is_earned_on_a_martingale():
    """Mean simple return a bar before fees: within four standard errors of nothing, on bars never seen."""
    trainer, test = trained_and_test_envs(simulate.martingale(seed=0), seed=1, fee=0.0)
    env = test()
    obs, _ = env.reset(seed=0)
    simple, ended = [], False
    for start in range(0, len(env.market) - 257, 256):  # every bar of the test part once
        obs, info = env.reset(options={"start": start})
        equity, ended = info["equity"], False
        while not ended:
            obs, _, terminated, truncated, info = env.step(trainer.act(obs))
            simple.append(info["equity"] / equity - 1)
            equity, ended = info["equity"], terminated or truncated
    assert len(simple) > 3000
    assert abs(np.mean(simple)) < 4 * np.std(simple) / np.sqrt(len(simple))
