"""The search by planted rates: nothing is trained, and the clock is a counter."""

import math

import pytest
import torch

from rlbench import Choices, DQNConfig
from rlbench.envs.source import env_source
from rlbench.progress import Progress
from rlbench.tuning.candidates import Space
from rlbench.tuning.contender import Candidate, TimeUp
from rlbench.tuning.finish import finish
from rlbench.tuning.race import FIRST_ROUNDS
from rlbench.tuning.search import Search
from rlbench.tuning.text import summary

CONFIG = DQNConfig(hidden=(8,), eval_episodes=0)
SLOTS = ["environments", "replay", "conversion", "update", "optimizer"]
ENV = "CartPole-v1"
BLOCK_S = 1.0


class World:
    """A clock, and what each candidate's rate is."""

    def __init__(self, rate, fails=lambda choices: False):
        self.now, self.rate, self.fails, self.blocks = 0.0, rate, fails, []

    def clock(self):
        return self.now


class Fake:
    """A contender of that world."""

    device, first_s, compile_s = "cpu", 0.5, 0.0

    def __init__(self, world, candidate):
        self.world, self.candidate, self.trainer, self.give_up = world, candidate, None, lambda: False

    def block(self, seconds):
        if self.trainer is None and self.give_up():
            raise TimeUp("planted")
        self.trainer = object()
        self.world.now += seconds
        self.world.blocks.append(self.candidate)
        if self.world.fails(self.candidate):
            raise RuntimeError("planted fault")
        return round(1000 * self.world.rate(self.candidate) * seconds), 10, seconds

    def close(self):
        self.trainer = None


@pytest.fixture
def searched(monkeypatch):
    def call(world, budget_s=10_000, slots=SLOTS, should_stop=lambda: False, apart=lambda candidate: 0.0, **more):
        monkeypatch.setattr("rlbench.tuning.search.Contender", lambda candidate, env, device: Fake(world, candidate))
        monkeypatch.setattr("rlbench.tuning.finish.Agreement.distance", lambda self, candidate: apart(candidate))
        space = Space(CONFIG, env_source(ENV), torch.device("cpu"), slots=slots, **{"threads": (1,), **more})
        with Progress(1, "t", "s", False) as bar:
            search = Search(space, ENV, budget_s, BLOCK_S, bar, should_stop, clock=world.clock)
            search.run()
            return finish(search)

    return call


def by_slot(gains, together=None):
    """The product of the gains of what is chosen; `together` multiplies where all of its choices are made."""

    def rate(candidate):
        chosen = {slot: candidate.choices.to_dict()[slot] for slot in SLOTS}
        product = math.prod(gains.get(pair, 1.0) for pair in chosen.items())
        for pairs, gain in (together or {}).items():
            product *= gain if set(pairs) <= set(chosen.items()) else 1.0
        return product

    return rate


def test_the_best_of_each_slot_is_found(searched):
    gains = {("optimizer", "foreach"): 1.3, ("replay", "ring_torch"): 1.2, ("environments", "batched"): 0.7}
    tuned = searched(World(by_slot({**gains, ("environments", "native"): 0.5, ("update", "native"): 0.2})))
    assert (tuned.choices.optimizer, tuned.choices.replay) == ("foreach", "ring_torch")
    assert tuned.choices.environments == "one_by_one" and tuned.choices.update == "eager"
    assert tuned.final.ratio == pytest.approx(1.56, rel=0.01) and tuned.final.verdict == "faster"
    below = [row for row in tuned.rows if row["ratio"] is not None and row["ratio"] < 1]
    assert {"update=native"} <= {label for row in below for label in row["label"].split(", ")}, (
        "the slow ones stay in the rows"
    )


def test_what_is_no_gain_alone_may_be_one_in_a_pair(searched):
    alone = {("optimizer", "foreach"): 0.95, ("replay", "ring_torch"): 0.95, ("update", "native"): 0.1}
    pair = (("optimizer", "foreach"), ("replay", "ring_torch"))
    tuned = searched(World(by_slot({**alone, ("environments", "native"): 0.1}, {pair: 2.0})))
    assert (tuned.choices.optimizer, tuned.choices.replay) == ("foreach", "ring_torch")
    assert tuned.final.ratio == pytest.approx(2 * 0.95**2, rel=0.01)


def test_even_what_is_slow_as_a_rule_is_tried_at_last(searched):
    tuned = searched(World(by_slot({("replay", "deque"): 1.5})))
    assert tuned.choices.replay == "deque"


def test_only_valid_choices_are_ever_trained(searched):
    world = World(by_slot({("update", "native"): 1.5}))
    searched(world, slots=None)
    source = env_source(ENV)
    for choices in {candidate.choices for candidate in world.blocks}:
        choices.check("dqn", CONFIG, torch.device("cpu"), source)


def test_threads_and_chunks_are_searched(searched):
    def rate(candidate):
        native = 2.0 if candidate.choices.loop == "native" else 1.0
        return native * candidate.config.log_frequency**0.1 * (1.5 if candidate.threads == 3 else 1.0)

    tuned = searched(World(rate), slots=None, threads=(1, 3))
    assert tuned.threads == 3 and tuned.choices.loop == "native"
    assert tuned.settings == {"log_frequency": 4_000}, "16,000 would be over a tenth of the training"
    assert "log_frequency=4000" in summary(tuned)


def test_who_raises_is_out_and_told(searched):
    world = World(by_slot({("optimizer", "foreach"): 1.3}), fails=lambda c: c.choices.replay == "ring_torch")
    tuned = searched(world)
    assert tuned.choices.optimizer == "foreach" and tuned.choices.replay != "ring_torch"
    assert "RuntimeError: planted fault" in summary(tuned)


def test_the_best_may_fail_later(searched):
    world = World(by_slot({("optimizer", "foreach"): 1.3}))
    world.fails = lambda c: c.choices.optimizer == "foreach" and world.blocks.count(c) > 12
    tuned = searched(world)
    assert tuned.choices.optimizer != "foreach" and any("planted fault" in text for text in tuned.left_out)


def test_plain_itself_must_run(searched):
    with pytest.raises(RuntimeError, match="planted fault"):
        searched(World(by_slot({}), fails=lambda c: c.choices == Choices.plain()))


def test_the_next_best_takes_the_place_of_what_learns_something_else(searched):
    world = World(by_slot({("optimizer", "foreach"): 1.2, ("replay", "ring_torch"): 1.5}))
    tuned = searched(world, apart=lambda c: 0.5 if c.choices.replay == "ring_torch" else 1e-6)
    assert tuned.choices.replay == "ring_numpy" and tuned.choices.optimizer == "foreach"
    assert tuned.rejected and all("ring_torch" in label and distance == 0.5 for label, distance in tuned.rejected)
    assert "rejected, since it learns something else" in summary(tuned)


def test_what_is_bitwise_must_be_so(searched):
    world = World(by_slot({("replay", "ring_torch"): 1.5}))
    tuned = searched(world, apart=lambda c: 1e-9)
    assert tuned.choices.replay == "ring_numpy" and tuned.rejected[0] == ("replay=ring_torch", 1e-9)


def test_the_budget_holds_but_for_a_block(searched):
    for budget_s in (20, 50, 111):
        world = World(by_slot({("optimizer", "foreach"): 1.1, ("replay", "ring_torch"): 1.2}))
        tuned = searched(world, budget_s=budget_s)
        assert world.now <= budget_s + BLOCK_S and tuned.seconds <= budget_s + BLOCK_S
        assert tuned.final.rounds >= 1


def test_an_interrupt_gives_the_best_so_far(searched):
    world = World(by_slot({("optimizer", "foreach"): 1.3, ("replay", "ring_torch"): 1.2, ("update", "native"): 2.0}))
    tuned = searched(world, should_stop=lambda: len(world.blocks) > 40)
    assert tuned.interrupted and tuned.choices.update == "native", "found in the first race"
    assert len(world.blocks) <= 41 + 3 * FIRST_ROUNDS and tuned.final.rounds == FIRST_ROUNDS
    assert "ended early" in summary(tuned)


def test_what_compiles_must_fit_the_budget(searched):
    space = Space(CONFIG, env_source(ENV), torch.device("cpu"))
    compiled = Candidate(Choices.plain().replace(update="compiled"), 1, CONFIG, {"update": "compiled"})
    world = World(by_slot({}))
    with Progress(1, "t", "s", False) as bar:
        search = Search(space, ENV, 200, BLOCK_S, bar, lambda: False, clock=world.clock)
        assert search._affordable(compiled)
        world.now = 100.0  # 40 are left of the search
        assert not search._affordable(compiled) and "update=compiled: compiling may take 40 s" in search.left_out[0]
        search.compile_s[compiled.compiled] = 7.0  # as it was measured
        assert search._affordable(compiled)
