"""Faults that are found by the reader's own lines, and the choices of our trainers that answer them."""

import textwrap

import pytest
from planted import HEALTHY, counted, evidence, hot, place

from rlbench import Choices, DQNConfig
from rlbench.envs.source import env_source
from rlbench.profiling.advice import advise
from rlbench.profiling.evidence import TrainerRun
from rlbench.profiling.records import OpLine, Product, Sync


def faults(found):
    return [advice for advice in found if advice.kind == "fault"]


def first(found):
    return faults(found)[0]


def script(tmp_path, text):
    """A reader's script; gives (line of a snippet) -> keyword arguments of a hot line there."""
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(text))
    lines = path.read_text().splitlines()

    def at(snippet, function):
        line = next(i for i, source in enumerate(lines, start=1) if snippet in source)
        return {"file": str(path), "line": line, "function": function}

    return at


def test_a_pass_for_each_sample():
    products = (Product("forward", 1, 4, 64, 6400, True), Product("forward", 1, 64, 64, 6400, True))
    shares = HEALTHY | {
        "forward": 0.60,
        "backward": 0.20,
        "sample": 0.0,
        "action": 0.02,
        "env": 0.01,
        "store": 0.01,
        "python": 0.06,
    }
    found = first(advise(evidence(shares, counted=counted(products=products))))
    # 8 ms of forward and backward; a pass of all 64 takes 0.4 ms, half of it the optimizer's at most
    assert found.name == "loop_over_samples" and "64 forward passes" in found.text
    assert found.predicted_gain == pytest.approx(1 / (1 - 0.8 + 0.02))


def test_operators_for_each_sample(tmp_path):
    at = script(
        tmp_path,
        """\
        def targets(batch):
            out = torch.zeros(len(batch))
            for i, row in enumerate(batch):
                out[i] = row.reward + 0.99 * row.best
            return out
        """,
    )
    line = hot("out[i] = …", 0.5, 0.5, "sample", **at("out[i]", "targets"))
    ops = OpLine(line.place, "sample", 19200, 192.0)
    found = first(advise(evidence(HEALTHY | {"sample": 0.5}, lines=(line,), counted=counted(op_lines=[ops]))))
    assert found.name == "loop_over_samples" and "for (i, row) in enumerate(batch)" in found.text
    assert found.predicted_gain == pytest.approx(1 / (1 - 0.5 * (1 - 2 / 192)))


def test_a_training_loop_is_no_loop_over_samples(tmp_path):
    at = script(
        tmp_path,
        """\
        def main():
            for step in range(1000):
                obs = env.step(action)
                loss = compute(batch)
        """,
    )
    line = hot("loss = compute(batch)", 0.5, 0.5, "forward", **at("loss =", "main"))
    ops = OpLine(line.place, "forward", 5000, 50.0)
    assert faults(advise(evidence(lines=(line,), counted=counted(op_lines=[ops])))) == []


REPLAY = """\
    class Replay:
        def sample(self, size):
            batch = random.sample(self.rows, size)
            obs = np.stack([row[0] for row in batch])
            return torch.from_numpy(obs)
"""


def test_a_replay_that_stacks(tmp_path):
    at = script(tmp_path, REPLAY)
    lines = (
        hot("obs = np.stack(…)", 0.3, 0.3, "sample", **at("np.stack", "sample")),
        hot("batch = random.sample(…)", 0.1, 0.1, "sample", **at("random.sample", "sample")),
    )
    found = first(advise(evidence(HEALTHY | {"sample": 0.4}, lines=lines)))
    assert found.name == "stacked_replay" and "np.stack" in found.places[0].source
    # 4 ms of 10; arrays take 20 µs
    assert found.predicted_gain == pytest.approx(1 / (1 - 0.4 * (1 - 0.005)))
    assert found.bound == pytest.approx(1 / 0.6)


def test_features_of_every_step_and_a_file_of_every_episode(tmp_path):
    at = script(
        tmp_path,
        """\
        class Env:
            def load(self):
                self.prices = pd.read_csv(self.path)
            def indicators(self, prices):
                return prices.rolling(5).mean()
            def observe(self):
                return self.indicators(self.prices)[-1]
            def step(self, action):
                return self.observe()
        """,
    )
    features = (
        hot("rolling", 0.4, 0.4, "env", **at("rolling", "indicators")),
        hot("observe", 0.05, 0.45, "env", **at("self.indicators(", "observe")),
    )
    found = first(advise(evidence(HEALTHY | {"env": 0.5}, lines=features)))
    assert found.name == "recomputed_features" and found.predicted_gain == pytest.approx(1 / 0.55)
    file = (hot("read_csv", 0.2, 0.2, "env", **at("read_csv", "load")),)
    found = first(advise(evidence(HEALTHY | {"env": 0.5}, lines=file)))
    assert found.name == "file_each_episode" and found.predicted_gain == pytest.approx(1 / 0.8)
    both = faults(advise(evidence(HEALTHY | {"env": 0.5}, lines=(*features, *file))))
    assert [advice.name for advice in both] == ["recomputed_features", "file_each_episode"], "by their gain"


@pytest.mark.parametrize("naive", [True, False])
def test_choices_of_our_trainers_are_valid_and_new(tmp_path, naive):
    at = script(tmp_path, REPLAY)
    choices = Choices.naive() if naive else Choices.plain()
    source = env_source("CartPole-v1")
    run = TrainerRun("dqn", DQNConfig(), choices, source, "cpu")
    lines = (hot("obs = np.stack(…)", 0.4, 0.4, "sample", **at("np.stack", "sample")),)
    syncs = [Sync(place("self.losses.append(loss.item())", whose="library"), ".item()", "sync", 100, 1.0)]
    found = advise(evidence(HEALTHY | {"sample": 0.4}, lines=lines, counted=counted(syncs), run=run, what="dqn"))
    chosen = {advice.name: dict(advice.choice) for advice in found if advice.choice}
    assert ("sync_each_step" in chosen) == naive
    assert ("stacked_replay" in chosen) == naive
    for choice in chosen.values():
        for slot, variant in choice.items():
            assert choices.to_dict()[slot] != variant or len(choice) > 1
            assert choices.replace(**choice).reason_against(slot, variant, run.config, "cpu", source) is None
