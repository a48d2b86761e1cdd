"""The slot of sum trees: it is refused where there are no priorities."""

import torch

from rlbench import DQNConfig
from rlbench.speedups.priorities import SPEEDUP

CPU = torch.device("cpu")


def test_it_needs_priorities():
    for variant in SPEEDUP.variants:
        assert SPEEDUP.requires(variant, None, None, CPU, None) is None
        assert "samples uniformly" in SPEEDUP.requires(variant, None, DQNConfig(), CPU, None)
        config = DQNConfig(prioritized_replay_alpha=0.6)
        assert SPEEDUP.requires(variant, None, config, CPU, None) is None


def test_repeated_calls_agree_too():
    """The tree changes with each call; both variants change alike."""
    calls = [SPEEDUP.bind(make, SPEEDUP.make_inputs(40, 3, "cpu")) for make in SPEEDUP.variants.values()]
    for _ in range(5):
        expected, actual = (call() for call in calls)
        SPEEDUP.check(expected, actual)


def test_draws_cover_the_priorities():
    """Shares of the draws against shares of the priorities: each of four quarters of the slots within a percent."""
    priority, share, _ = SPEEDUP.make_inputs(1024, 1, "cpu")
    tree = SPEEDUP.variants["vectorised"](len(priority))
    tree.set(torch.arange(len(priority)).numpy(), priority)
    quarter = tree.find(share * tree.total) // (len(priority) // 4)
    for q in range(4):
        expected = priority[q * 2500 : (q + 1) * 2500].sum() / priority.sum()
        assert abs((quarter == q).mean() - expected) < 0.01
