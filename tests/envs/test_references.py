"""The references that a trained agent's return is held against."""

import math

import numpy as np
import pytest

from rlbench import simulate
from rlbench.envs.references import references, run_policy, share, summary
from rlbench.envs.trading import TradingEnv


def test_by_hand(toy_market):
    # Fee 1 %. Hold: 0.99 * 90 / 100. Best: 1 % costs more than the first bar brings, then short from 120 to 90:
    # selling leaves 1 / 1.01 of the equity and the fall adds a quarter; long before that: 0.99 * 1.2, flip at 1.
    table = references(toy_market([100.0, 120.0, 90.0]), {"fee": 0.01})
    assert table.loc["always flat", "equity"] == 1.0
    assert table.loc["buy and hold", "equity"] == pytest.approx(0.891)
    flipped = 0.99 * 1.2 * (1 - 0.01 * 2 / 1.01) * 1.25
    assert table.loc["best in hindsight", "equity"] == pytest.approx(flipped)
    assert table["fills"].drop("random").to_dict() == {"always flat": 0, "buy and hold": 1, "best in hindsight": 2}
    assert table.loc["buy and hold", "log_return_per_bar"] == pytest.approx(math.log(0.891) / 2)
    assert table.loc["buy and hold", "share_of_hindsight"] == pytest.approx(math.log(0.891) / math.log(flipped))
    assert "share_of_causal" not in table


def test_window_shifts_the_first_bar(toy_market):
    table = references(toy_market([500.0, 100.0, 110.0]), {"fee": 0.0, "window": 2, "positions": (0, 1)})
    assert table.loc["buy and hold", "equity"] == pytest.approx(1.1)
    assert table.loc["best in hindsight", "equity"] == pytest.approx(1.1)


def test_nothing_to_earn_leaves_no_share(toy_market):
    table = references(toy_market([100.0, 100.0]), {"fee": 0.01})
    assert table.loc["best in hindsight", "log_return"] == 0.0
    assert table["share_of_hindsight"].isna().all()
    assert math.isnan(share(0.1, 0.0)) and share(0.5, 2.0) == 0.25


def test_random_is_seeded_and_pays_for_its_trades(random_market):
    market = random_market(2_000)
    one, again, other = (references(market, {"fee": 1e-3}, seed=seed) for seed in (1, 1, 2))
    assert one.equals(again)
    assert one.loc["random", "equity"] != other.loc["random", "equity"]
    assert one.loc["random", "log_return"] < one.loc["always flat", "log_return"] == 0.0
    # Two of three draws change the position.
    assert abs(one.loc["random", "fills"] - 1_999 * 2 / 3) < 4 * math.sqrt(1_999 * 2 / 9)


def test_ou_market_has_the_best_causal_policy():
    market = simulate.ornstein_uhlenbeck(3_000, seed=2)
    table = references(market, {"fee": 1e-3, "episode_length": 256})
    assert table["log_return"].idxmax() == "best in hindsight"
    assert table["log_return"].drop("best in hindsight").idxmax() == "best causal"
    assert table.loc["best causal", "share_of_causal"] == 1.0
    assert 0.0 < table.loc["best causal", "share_of_hindsight"] < 1.0
    # Borrow interest is not in its model, so it is not claimed to be the best then.
    assert "best causal" not in references(market, {"borrow_rate": 1e-5}).index


def test_run_policy_plays_one_episode(toy_market):
    env = TradingEnv(toy_market(np.linspace(100.0, 200.0, 11)), fee=0.0, episode_length=3)
    history = run_policy(env, lambda observation: 2, options={"start": 5})
    assert history["bar"].tolist() == [5, 6, 7, 8]
    figures = summary(history)
    assert figures["equity"] == pytest.approx(180.0 / 150.0)
    assert figures["fills"] == 1


def test_bad_env_arguments_are_named(toy_market):
    with pytest.raises(ValueError, match=r"^fee=2.*accepted"):
        references(toy_market([1.0, 2.0]), {"fee": 2})
