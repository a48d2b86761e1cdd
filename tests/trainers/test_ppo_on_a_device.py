"""What PPO does on a GPU, as far as a CPU can show it: on tensors without values, whatever waits for one is an error, and so is
whatever lies elsewhere.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rlbench import SPEEDUPS, Choices, PPOConfig
from rlbench.actions import ActionSets
from rlbench.advantages import gae_rows, gae_scan
from rlbench.batch import Decisions
from rlbench.envs.games import GameStep
from rlbench.envs.othello import Othello
from rlbench.envs.source import env_source
from rlbench.evaluations.compiled import settings_of_process
from rlbench.evaluations.packed import Packed
from rlbench.minibatches import Rows
from rlbench.models.action_scorer import ActionScorer
from rlbench.speedups.choices import ChoiceError
from rlbench.trainers.game_rollouts import GameRollouts
from rlbench.updates.ppo_eager import PPOEager
from rlbench.updates.ppo_functional import PPOSettings, on_bucket, policy_of, ppo_update

META, CUDA = torch.device("meta"), torch.device("cuda")
ROWS, ACTIONS, FEATURES, HIDDEN = 6, 20, 4, (8, 5)
COUNTS = np.array([3, 4, 3, 4, 3, 3])


@pytest.fixture(autouse=True)
def autocast_knows_meta(monkeypatch):
    asked = torch.is_autocast_enabled
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *kind: kind != ("meta",) and asked(*kind))


def scorer(encode="shift"):
    return ActionScorer(FEATURES, HIDDEN, encode=SPEEDUPS["action_encoding"].variants[encode]).to(META)


def sets():
    return ActionSets(*(torch.zeros(n, dtype=torch.int64, device=META) for n in (ACTIONS, ROWS + 1)))


def decisions():
    columns = [torch.zeros(ROWS, device=META) for _ in range(4)]
    obs, choice = torch.zeros(ROWS, FEATURES, device=META), torch.zeros(ROWS, dtype=torch.int64, device=META)
    return Decisions(obs, sets(), choice, *columns)


def lies_there(*tensors):
    return all(tensor.device == META for tensor in tensors)


@pytest.mark.parametrize("encode", SPEEDUPS["action_encoding"].variants)
def test_packed_evaluation_waits_for_nothing(encode):
    model, batch = scorer(encode), decisions()
    assert lies_there(*Packed(model).log_probs(batch.obs, batch.legal))
    now = Packed(model).evaluate(batch.obs, batch.legal, batch.choice)
    sum(part.sum() for part in now).backward()
    assert lies_there(*now, *(parameter.grad for parameter in model.parameters()))


@pytest.mark.parametrize("optimizer", ["for_loop", "foreach"])
def test_an_eager_update_waits_for_nothing(optimizer):
    model = scorer()
    update = PPOEager(model, PPOConfig(hidden=HIDDEN), Packed(model), SPEEDUPS["optimizer"].variants[optimizer])
    assert lies_there(*update(decisions(), 1e-3))


def test_the_update_that_is_compiled_waits_for_nothing():
    policy, network = policy_of(scorer())
    parameters = network.adopt(policy)
    scalars = [torch.zeros((), dtype=kind, device=META) for kind in (torch.int64, torch.float32, torch.float64)]
    step, rows, rate = scalars
    settings = PPOSettings.of(PPOConfig())
    padded = on_bucket(decisions())
    after, moments, updated = ppo_update(
        network, parameters, network.start(parameters), step, padded, rows, rate, settings
    )
    assert lies_there(after, *moments, *updated)


@pytest.mark.parametrize("minibatch", ["copies", "index_views", "by_count"])
def test_minibatches_wait_for_nothing(minibatch):
    order = np.array([5, 0, 3, 1, 2, 4])
    batches = list(SPEEDUPS["minibatch"].variants[minibatch](Rows(decisions(), COUNTS), order, [4, 2]))
    assert [len(batch.choice) for batch in batches] == [4, 2]
    assert all(lies_there(*batch.legal, *(batch[i] for i in (0, 2, 3, 4, 5, 6))) for batch in batches)


@pytest.mark.parametrize("gae", [gae_rows, gae_scan])
def test_advantages_wait_for_nothing(gae):
    rows = [torch.zeros(7, 3, device=META) for _ in range(3)]
    ends = [torch.zeros(7, 3, dtype=torch.bool, device=META) for _ in range(2)]
    assert lies_there(gae(*rows, *ends, 0.99, 0.95, -1.0))


def test_to_act_and_to_collect_waits_for_nothing(monkeypatch):
    """The games themselves may; what lies around them does not, but for a look at the whole where a rollout ends."""

    class Games:
        name, num_envs, obs_size, alternating, device = "Games", ROWS, FEATURES, True, META

        def step(self, ids):
            flags = [torch.zeros(ROWS, dtype=torch.bool, device=META) for _ in range(2)]
            obs, reward = torch.zeros(ROWS, FEATURES, device=META), torch.zeros(ROWS, device=META)
            assert lies_there(ids) and ids.dtype == torch.int64
            return GameStep(obs, sets(), reward, *flags, obs)

    model = scorer()
    monkeypatch.setattr(GameRollouts, "_begin", lambda self: None)
    monkeypatch.setattr(GameRollouts, "_note", lambda self, steps, note: None)
    monkeypatch.setattr(GameRollouts, "_rollout", lambda self, states, steps: (states, steps))
    rollouts = GameRollouts(Games(), model, Packed(model), PPOConfig(num_steps=3), META)
    rollouts.obs, rollouts.legal, rollouts.whole = torch.zeros(ROWS, FEATURES, device=META), sets(), True
    states, steps = rollouts.collect(0, None)
    assert len(states) == len(steps) == 3 and all(lies_there(*state[2:]) for state in states)


def test_what_is_chosen_on_cuda():
    """fast() there compiles; games are stepped by tensors, so that nothing is uploaded; CartPole's rollouts are."""
    game, cart = env_source(Othello()), env_source("CartPole-v1")
    config, fast = PPOConfig(), Choices.fast("cuda")
    if SPEEDUPS["evaluate"].requires("packed_compiled", None, None, CUDA, None):
        pytest.skip("torch.compile cannot work for CUDA here")
    of_game, of_cart = (fast.usable(config, CUDA, env).in_use(config, CUDA, env) for env in (game, cart))
    assert (of_game["games"], of_game["evaluate"], of_game["ppo_update"]) == ("batched", "packed_compiled", "compiled")
    assert "upload" not in of_game and "transfer" not in of_game and of_cart["upload"] == "whole_rollout_once"
    with pytest.raises(ChoiceError, match="collects on the device"):
        fast.replace(upload="whole_rollout_once").check("ppo", config, CUDA, game)
    with pytest.raises(ChoiceError, match="native code runs on the CPU"):
        fast.replace(games="native").check("ppo", config, CUDA, game)


def test_advantages_of_envs_on_the_host_are_compiled_for_the_host(monkeypatch):
    asked = []
    monkeypatch.setattr("rlbench.speedups.gae.why_not", lambda kind: asked.append(kind))
    for env in (SimpleNamespace(game=None), SimpleNamespace(game=object()), None):
        assert SPEEDUPS["gae"].requires("compiled", None, None, CUDA, env) is None
    assert asked == ["cpu", "cuda", "cuda"]


def test_products_in_fewer_bits_are_compiled_by_themselves():
    before = torch.backends.cuda.matmul.fp32_precision
    try:
        found = []
        for precision in ("ieee", "tf32"):
            torch.backends.cuda.matmul.fp32_precision = precision
            found.append((settings_of_process(CUDA), settings_of_process(torch.device("cpu"))))
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
    (one, on_cpu), (other, still) = found
    assert one != other and on_cpu == still
