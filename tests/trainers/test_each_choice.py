"""Every choice learns what plain() learns: each alone, and every pair of them in some combination."""

import itertools
import random

import pytest
import torch

from rlbench import DQN, SPEEDUPS, Choices, DQNConfig, market
from rlbench.envs.factories import TradingFactory
from rlbench.envs.source import env_source
from rlbench.speedups.choices import ChoiceError

CPU = torch.device("cpu")
SMALL = DQNConfig(
    total_timesteps=96,
    num_envs=3,
    learning_starts=48,
    train_frequency=4,
    gradient_steps=2,
    target_network_frequency=20,
    batch_size=16,
    buffer_size=60,
    hidden=(16,),
    eval_episodes=0,
    log_frequency=50,
    start_e=1.0,
    end_e=1.0,
)
WINDOWS = TradingFactory(market.real(), {"window": 3, "episode_length": 11})
SOURCE = env_source(WINDOWS)
BY_PRIORITY = SMALL.replace(prioritized_replay_alpha=0.6)
SLOTS = {name: slot for name, slot in SPEEDUPS.items() if "dqn" in slot.workloads}
COMPILES = {("update", "compiled"), ("update", "chunked"), ("loop", "fused")}
PROCESSES = {("environments", "async")}
# Of what the weights move, what fewer bits may change.
ROOM = {"bfloat16": 0.5, "float16_scaled": 0.5}


def run(config, choices):
    trainer = DQN(config, choices, WINDOWS)
    before = {name: weight.clone() for name, weight in trainer.online.state_dict().items()}
    history = trainer.train(progress=False)
    trainer.close()
    return history, before


def config_for(chosen):
    """Settings under which the chosen variants are of use."""
    return BY_PRIORITY if "priorities" in chosen else SMALL


def agrees(chosen):
    """Train with `chosen` and with plain(), and compare."""
    config = config_for(chosen)
    (plain, before), (other, _) = run(config, Choices.plain()), run(config, Choices(**chosen))
    assert other.updates + other.skipped_updates >= plain.updates == 24 and other.target_syncs == plain.target_syncs
    assert set(chosen.items()) <= set(other.choices.items())
    room = ROOM.get(chosen.get("precision"), 0.0)
    if {SPEEDUPS[slot].sameness for slot in chosen} == {"bitwise"}:
        assert other.weights_sha256 == plain.weights_sha256
    for name, weight in plain.weights.items():
        moved = (weight - before[name]).abs().max().item()
        torch.testing.assert_close(other.weights[name], weight, rtol=1e-4, atol=1e-5 + room * moved)


ALONE = [
    pytest.param(slot, variant, marks=[pytest.mark.slow] if (slot, variant) in COMPILES | PROCESSES else [])
    for slot, speedup in SLOTS.items()
    for variant in speedup.variants
    if speedup.requires(variant, None, None, CPU, SOURCE) is None
]


@pytest.mark.parametrize(("slot", "variant"), ALONE)
def test_each_choice_alone_learns_what_plain_learns(slot, variant):
    chosen = {slot: variant}
    if variant == "table_on_device":
        chosen["environments"] = "batched"  # whose table it is
    agrees(chosen)


def test_named_choices_learn_what_plain_learns():
    plain, _ = run(SMALL, Choices.plain())
    assert run(SMALL, Choices.naive())[0].weights_sha256 == plain.weights_sha256
    fast, _ = run(SMALL, Choices.fast())
    assert fast.choices["loop"] == "native"
    for name, weight in fast.weights.items():
        torch.testing.assert_close(weight, plain.weights[name], rtol=1e-4, atol=1e-5)


def usable_part(chosen):
    """What of a full set of variants a trainer would use: the loop first, then what it leaves to others."""
    choices, config = Choices(**chosen), config_for(chosen)
    used = choices.in_use(config, CPU, SOURCE)
    try:
        Choices(**used).check("dqn", config, CPU, SOURCE)
    except ChoiceError:
        return {}
    return used


def covering(left_out, samples=1500):
    """Combinations in which every two variants that go together come together at least once (greedily chosen)."""
    rng = random.Random(1)
    offered = {
        slot: [v for v in s.variants if (slot, v) not in left_out and s.requires(v, None, None, CPU, SOURCE) is None]
        for slot, s in SLOTS.items()
        if slot != "loop"
    }
    pool = []
    for _ in range(samples):
        used = usable_part({slot: rng.choice(variants) for slot, variants in offered.items()})
        if used:
            pool.append((used, set(itertools.combinations(sorted(used.items()), 2))))
    open_pairs, chosen = set().union(*(pairs for _, pairs in pool)), []
    while open_pairs:
        used, pairs = max(pool, key=lambda entry: len(entry[1] & open_pairs))
        chosen.append(used)
        open_pairs -= pairs
    return chosen


PAIRS = covering(COMPILES | PROCESSES)


def test_the_covering_set_is_small():
    assert len(PAIRS) <= 30


@pytest.mark.parametrize("chosen", PAIRS, ids=lambda chosen: "-".join(chosen.values()))
def test_every_two_choices_together_learn_what_plain_learns(chosen):
    agrees(chosen)


@pytest.mark.slow
def test_every_two_choices_together_those_that_compile_included(monkeypatch):
    monkeypatch.setattr("rlbench.compile.BACKEND", "eager")  # traced and guarded as ever, but nothing is generated
    every = covering(PROCESSES)
    assert len(every) <= 30
    for chosen in every:
        if COMPILES & set(chosen.items()):
            agrees(chosen)
