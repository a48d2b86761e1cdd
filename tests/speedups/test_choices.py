"""Choices: immutable, checked by name, and never ignored."""

import pickle

import pytest
import torch

from rlbench import ChoiceError, Choices, DQNConfig
from rlbench.envs.factories import TradingFactory
from rlbench.envs.make import factory_of
from rlbench.envs.source import env_source
from rlbench.simulate import martingale
from rlbench.speedups import SPEEDUPS


def test_three_named_choices():
    naive, plain, fast = Choices.naive(), Choices.plain(), Choices.fast("cpu")
    assert naive.replay == "deque" and plain.replay == "ring_numpy" and fast.optimizer == "fused"
    assert Choices.fast("cuda").replay == "ring_torch"  # sampled where the network is
    assert Choices() == plain and not plain.explicit
    assert Choices.plain("cuda").optimizer == "foreach" and plain.optimizer == "for_loop"  # Adam's own defaults
    for choices in (naive, plain, fast, Choices.plain("cuda"), Choices.fast("cuda")):
        assert set(choices) == set(SPEEDUPS)


def test_naive_is_the_plainest_of_every_slot():
    assert Choices.naive().to_dict() == {slot: speedup.plainest for slot, speedup in SPEEDUPS.items()}


@pytest.mark.parametrize(
    ("variants", "words"),
    [
        ({"replay": "ring"}, ["replay='ring'", "deque, ring_numpy, ring_torch"]),
        ({"replay": 1}, ["replay=1", "accepted"]),
        ({"reply": "deque"}, ["reply", "did you mean replay"]),
    ],
)
def test_unknown_names_are_refused(variants, words):
    for make in (lambda: Choices(**variants), lambda: Choices.fast().replace(**variants)):
        with pytest.raises(ChoiceError) as error:
            make()
        assert all(word in str(error.value) for word in words), str(error.value)


def test_choices_cannot_be_changed_in_place():
    choices = Choices()
    with pytest.raises(AttributeError, match=r"choices\.replace\(replay='deque'\)"):
        choices.replay = "deque"
    with pytest.raises(AttributeError, match="no slot 'colour'"):
        _ = choices.colour
    other = choices.replace(replay="deque")
    assert (choices.replay, other.replay, other.explicit) == ("ring_numpy", "deque", {"replay"})
    assert hash(other) == hash(Choices(replay="deque")) and other == Choices(replay="deque")
    copy = pickle.loads(pickle.dumps(other))
    assert copy == other and copy.explicit == other.explicit


@pytest.mark.parametrize(
    ("choices", "device", "words"),
    [
        (Choices(transfer="pinned"), "cpu", ["transfer='pinned'", "needs CUDA", "accepted here: pageable"]),
        (
            Choices(replay="ring_torch", conversion="stack_once"),
            "cpu",
            ["conversion='stack_once'", "leave this slot out"],
        ),
        (Choices(replay="ring_torch", transfer="pinned"), "cuda", ["transfer", "no batch is transferred"]),
        (
            Choices.fast("cuda").replace(transfer="pinned"),
            "cuda",
            ["transfer", "loop='fused' does this in its own way"],
        ),
        (Choices(loop="native", update="native"), "cpu", ["update='native'", "loop='native' does this in its own way"]),
    ],
)
def test_what_would_be_ignored_or_cannot_work_is_refused(choices, device, words):
    with pytest.raises(ChoiceError) as error:
        choices.check("dqn", DQNConfig(), device)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_slots_that_were_not_set_are_not_refused():
    Choices.fast("cuda").check("dqn", DQNConfig(), "cuda")
    Choices(replay="ring_torch").check("dqn", DQNConfig(), "cpu")
    assert "conversion" not in Choices.fast("cuda").in_use(device="cuda")


def test_another_trainers_slot_is_refused():
    with pytest.raises(ChoiceError, match="no such slot"):
        Choices(replay="deque").check("ppo", None, "cpu")


@pytest.mark.parametrize("choices", [Choices.naive(), Choices.plain(), Choices.fast(), Choices(replay="ring_torch")])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("env", ["CartPole-v1", "Acrobot-v1", "trading"])
def test_saved_choices_load_as_they_were_on_the_same_env_and_settings(choices, alpha, env, tmp_path):
    config = DQNConfig(prioritized_replay_alpha=alpha)
    source = env_source(factory_of(env) if "-" in env else TradingFactory(martingale(100, seed=0)))
    path, used = tmp_path / "choices.yaml", choices.usable(config, "cpu", source)
    used.save(path, config, "cpu", source)
    loaded = Choices.named(str(path))
    loaded.check("dqn", config, torch.device("cpu"), source)
    assert loaded.usable(config, "cpu", source).in_use(config, "cpu", source) == used.in_use(config, "cpu", source)


def test_a_slot_without_use_is_not_saved(tmp_path):
    path = tmp_path / "choices.yaml"
    Choices.fast().save(path, DQNConfig(), "cpu")
    assert path.read_text() == "loop: native\n"
    Choices(replay="ring_torch").save(path, DQNConfig(), "cpu", env_source("CartPole-v1"))
    slots = [line.partition(":")[0] for line in path.read_text().splitlines()]
    assert {"market_io", "features", "priorities", "conversion"}.isdisjoint(slots) and "replay" in slots


def test_choices_files_are_checked(tmp_path):
    path = tmp_path / "choices.yaml"
    path.write_text("# a comment\nreplay: 'deque'\n\n")
    assert Choices.load(path).replay == "deque"
    path.write_text('{"replay": "ring_torch"}')
    assert Choices.load(path).replay == "ring_torch"
    for text, words in [("replay deque", "line 1"), ("replay: dequeue", "accepted"), ("{", "JSON")]:
        path.write_text(text)
        with pytest.raises(ChoiceError, match=words):
            Choices.load(path)
    with pytest.raises(ChoiceError, match="neither naive, plain or fast, nor a file"):
        Choices.named("quick")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("replay: deque\nreplay: ring_numpy", r"mine.yaml, line 2: replay is set a second time"),
        ("reply: deque", r"mine.yaml: there is no slot 'reply': did you mean replay"),
        ('{"replay": "dequeue"}', r"mine.yaml: replay='dequeue': accepted are deque"),
        ('{"replay": ', r"mine.yaml: not a JSON object"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, text, says):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(ChoiceError, match=says):
        Choices.load(tmp_path / "mine.yaml")
