import json

import pytest
import torch

from rlbench import SPEEDUPS, Choices, DQNConfig, PPOConfig
from rlbench.envs.othello import Othello
from rlbench.envs.source import env_source
from rlbench.speedups.choices import ChoiceError
from rlbench.trainers.make import make_trainer
from rlbench.tuning import agreement, tune
from rlbench.tuning.agreement import MOST, Agreement
from rlbench.tuning.candidates import Space, settings_of
from rlbench.tuning.contender import Candidate, Contender, TimeUp
from rlbench.tuning.order import PHASES_OF, in_order
from rlbench.tuning.text import document, save_choices, summary, usage

CPU = torch.device("cpu")
DQN_SMALL = DQNConfig(hidden=(8,), batch_size=8, learning_starts=32, total_timesteps=4000, log_frequency=200)
PPO_SMALL = PPOConfig(hidden=(8,), num_envs=2, num_steps=8, batch_size=8, total_timesteps=4000)
TRAININGS = [(DQN_SMALL, "CartPole-v1"), (PPO_SMALL, "CartPole-v1"), (PPO_SMALL, Othello(4))]


@pytest.mark.parametrize(("config", "env"), TRAININGS)
def test_nothing_invalid_is_ever_a_candidate(config, env):
    source = env_source(env)
    space = Space(config, source, CPU)
    frontier, seen = space.starts(), set()
    for _ in range(2):
        moves = [(at, slot, naive) for at in frontier for slot in space.slots for naive in (False, True)]
        found = [choices for at, slot, naive in moves for choices in space.neighbours(at, slot, naive)]
        for choices in [*frontier, *found]:
            choices.check(config.trainer, config, CPU, source)
            changed = space.candidate(choices, 1).changed
            assert not {("metrics", "item_each_step"), ("precision", "bfloat16")} & set(changed.items())
        frontier = list(dict.fromkeys(found))[:6]
        seen |= set(found)
    assert len(seen) > 5


def test_lower_precision_only_where_it_is_asked_for():
    source = env_source("CartPole-v1")
    for asked in (False, True):
        space = Space(DQN_SMALL, source, CPU, statistical=asked)
        found = {choices.precision for choices in space.neighbours(space.plain, "precision")}
        assert ("bfloat16" in found) is asked and "tf32" not in found, "which needs CUDA"
    bfloat16 = space.candidate(space.plain.replace(precision="bfloat16"), 1)
    assert space.statistical(bfloat16) and not space.exact(bfloat16)


def test_chunks_are_settings_that_change_nothing_that_is_learnt():
    space = Space(DQN_SMALL, env_source("CartPole-v1"), CPU)
    native = space.candidate(space.plain.replace(loop="native"), 1)
    assert [c.config.log_frequency for c in space.chunked(native)] == [], "4 times 200 is over a tenth of 4000"
    longer = Space(DQN_SMALL.replace(total_timesteps=40_000), env_source("CartPole-v1"), CPU)
    native = longer.candidate(longer.plain.replace(loop="native"), 1)
    assert [c.changed for c in longer.chunked(native)] == [
        {"loop": "native", "log_frequency": 800},
        {"loop": "native", "log_frequency": 3200},
    ]
    plain = longer.candidate(longer.plain, 1)
    assert not list(longer.chunked(plain)), "the Python loop has no chunk"
    assert not list(Space(DQN_SMALL, env_source("CartPole-v1"), CPU, slots=["replay"]).chunked(native))
    ppo = Space(PPO_SMALL, env_source("CartPole-v1"), CPU)
    parts = list(ppo.chunked(ppo.candidate(ppo.plain, 1)))
    assert [settings_of(c.config, PPO_SMALL) for c in parts] == [{"gradient_accumulation": n} for n in (2, 4)]


def test_slots_that_are_not_there_are_refused():
    with pytest.raises(ChoiceError, match="gae"):
        Space(DQN_SMALL, env_source("CartPole-v1"), CPU, slots=["gae"])


def test_slots_of_long_phases_come_first():
    assert in_order(["replay", "optimizer", "threads", "loop"], {"sample": 0.5, "optimizer": 0.3}) == [
        *("loop", "replay", "optimizer", "threads"),
    ]
    assert set(SPEEDUPS) | {"threads", "chunks"} == set(PHASES_OF)


@pytest.mark.parametrize(
    ("config", "env", "slots"),
    [(DQN_SMALL, "CartPole-v1", ["optimizer", "replay"]), (PPO_SMALL, Othello(4), ["evaluate", "optimizer"])],
)
def test_a_small_search_on_real_trainings(tmp_path, config, env, slots):
    seen = []
    how = {"threads": [1], "block_s": 0.03, "progress": False, "on_row": seen.append}
    tuned = tune(config, env, device="cpu", budget_s=2.5, slots=slots, **how)
    assert tuned.choices.explicit <= set(slots) and tuned.threads == torch.get_num_threads()
    assert tuned.final.rounds > 0 and tuned.distance <= MOST
    assert seen == tuned.rows and len(tuned.rows) == len(tuned.standings)
    assert all(row["kind"] == "tune" and row["torch_threads"] == 1 and row["seeds"] == [1] for row in tuned.rows)
    path = tmp_path / "choices.yaml"
    save_choices(tuned, path)
    loaded = Choices.load(path)
    assert loaded.in_use(config, CPU, env_source(env)) == tuned.used
    make_trainer(config, loaded, env).close()
    text = path.read_text()
    assert text.startswith("# Found by `rlbench tune") and "seed 1" in text and "# torch threads: 1\n" in text
    with pytest.raises(FileExistsError, match="--force"):
        save_choices(tuned, path)
    save_choices(tuned, path, force=True)
    assert json.loads(json.dumps(document(tuned)["choices"])) == tuned.used
    assert "plain()" in summary(tuned) and usage(tuned, "x.yaml").startswith(
        f"rlbench train {config.trainer} --choices x.yaml"
    )


@pytest.mark.parametrize("config", [DQN_SMALL, PPO_SMALL])
def test_a_planted_wrong_variant_is_rejected(config, monkeypatch):
    """It is infinitely fast, so to speak: it wins every race, and takes other steps."""
    wrong = lambda parameters, rate: torch.optim.Adam(parameters, lr=rate, eps=1.0)  # noqa: E731
    monkeypatch.setitem(SPEEDUPS["optimizer"].variants, "fused", wrong)
    honest = Contender.block

    def block(self, seconds):
        steps, updates, spent = honest(self, seconds)
        return steps * (100 if self.candidate.choices.optimizer == "fused" else 1), updates, spent

    monkeypatch.setattr(Contender, "block", block)
    how = {"slots": ["optimizer"], "threads": [1], "block_s": 0.02, "progress": False}
    tuned = tune(config, "CartPole-v1", device="cpu", budget_s=2, **how)
    assert tuned.choices.optimizer != "fused" and tuned.rejected[0][0] == "optimizer=fused"
    assert tuned.rejected[0][1] > MOST and "optimizer=fused" in summary(tuned)


@pytest.mark.parametrize(("config", "env"), TRAININGS)
def test_the_same_network_is_no_distance_apart_and_another_one_is(config, env):
    plain = Candidate(Choices.plain(), 1, config, {})
    agreement = Agreement(plain, env, "cpu")
    assert agreement.distance(plain) == 0.0
    fused = Candidate(Choices.plain().replace(optimizer="fused"), 1, config, {"optimizer": "fused"})
    assert agreement.distance(fused) < 1e-3
    (start, after) = next(iter(agreement.made.values()))
    assert (after - start).norm() > 0, "something was learnt, though the step size falls to nothing"
    another = Candidate(Choices.plain(), 1, config.replace(learning_rate=2 * config.learning_rate), {})
    assert agreement.distance(another) > MOST


@pytest.mark.parametrize(("config", "env"), TRAININGS)
def test_distances_of_named_choices_are_those_of_their_candidates(config, env):
    plain = Choices.plain()
    others = {"itself": plain, "fused": plain.replace(optimizer="fused")}
    apart = agreement.distances(config, others, plain, env, "cpu")
    alone = Agreement(Candidate(plain, torch.get_num_threads(), config, {}), env, "cpu")
    changed = Candidate(others["fused"], torch.get_num_threads(), config, {"optimizer": "fused"})
    assert apart == {"itself": 0.0, "fused": alone.distance(changed)}


def test_what_learns_nothing_shows_nothing():
    plain = Candidate(Choices.plain(), 1, DQN_SMALL, {})
    agreement = Agreement(plain, "CartPole-v1", "cpu", {})
    agreement.distance(plain)
    config, (start, _) = next(iter(agreement.made.items()))
    agreement.made[config] = (start, start)
    assert agreement.distance(plain) == float("inf")


def test_a_contender_goes_on_with_the_next_seed_and_stops_when_told():
    contender = Contender(
        Candidate(Choices.plain(), 1, DQN_SMALL.replace(total_timesteps=200), {}), "CartPole-v1", "cpu"
    )
    steps, updates, seconds = contender.block(0.15)
    assert steps > 200 and updates > 10 and seconds >= 0.15 and contender.trainings > 1
    assert contender.config.start_e == contender.config.end_e and contender.first_s > 0
    contender.close()
    contender.give_up = lambda: True
    with pytest.raises(TimeUp):
        contender.block(0.01)
    assert contender.trainer is None


def test_loops_of_many_iterations_end_near_the_end_of_a_block():
    candidate = Candidate(Choices.plain().replace(loop="tensors"), 1, DQN_SMALL.replace(log_frequency=4000), {})
    contender = Contender(candidate, "CartPole-v1", "cpu")
    assert contender.block(0.02)[0] < 2000, "the log would let it go on to 4000"
    contender.close()


def test_a_search_that_is_stopped_gives_what_it_has():
    how = {"slots": ["optimizer"], "block_s": 0.02, "progress": False, "should_stop": lambda: True}
    threads = torch.get_num_threads()
    tuned = tune(DQN_SMALL, "CartPole-v1", device="cpu", budget_s=1, **how)
    assert tuned.interrupted and set(tuned.choices.to_dict()) == set(SPEEDUPS) and torch.get_num_threads() == threads
