"""What is handed to native code is looked at first: wrong types, shapes, layouts and devices are an error each, no crash."""

import random

import pytest
import torch

from rlbench.actions import ActionError, ActionSets
from rlbench.batch import Decisions
from rlbench.config import PPOConfig
from rlbench.envs.othello import Othello
from rlbench.envs.spaces import EnvError
from rlbench.evaluations.loop import Loop
from rlbench.models.action_scorer import ActionScorer
from rlbench.native.othello_masks import MaskGames
from rlbench.native.policy import why_no_policy

pytestmark = pytest.mark.skipif(why_no_policy() is not None, reason=str(why_no_policy()))
FEATURES, HIDDEN = 5, (7, 6)
NUMBERS = torch.float32, torch.float64, torch.float16, torch.int32, torch.int64, torch.bool, torch.complex64
CHANGES = {
    "apart": lambda t, rng: torch.stack([t, t], -1)[..., 0],  # the same numbers, not side by side
    "backwards": lambda t, rng: t.flip(0),
    "type": lambda t, rng: t.to(rng.choice(NUMBERS)),
    "axis more": lambda t, rng: t[None],
    "column": lambda t, rng: t[:, None],
    "nothing": lambda t, rng: t[:0],
    "one less": lambda t, rng: t[1:],
    "negative": lambda t, rng: -t - 1,
    "large": lambda t, rng: t + rng.choice([1, 10, 2**40, 2**62]),
    "requires a gradient": lambda t, rng: t.clone().requires_grad_() if t.is_floating_point() else t,
    "one for all": lambda t, rng: t[:1].expand(t.shape),
    "no number": lambda t, rng: t * float("nan") if t.is_floating_point() else t,
    "elsewhere": lambda t, rng: t.to("meta"),
    "NumPy": lambda t, rng: t.numpy(),
    "list": lambda t, rng: t.tolist(),
    "None": lambda t, rng: None,
}
REFUSED = (ActionError, EnvError)


def changed(tensor, rng):
    return CHANGES[rng.choice(list(CHANGES))](tensor, rng) if rng.random() < 0.4 else tensor


def decisions_of(rng):
    rows = rng.choice([0, 1, 2, 5])
    generator = torch.Generator().manual_seed(rng.randint(0, 10**6))
    counts = torch.randint(1, 6, (rows,), generator=generator)
    offsets = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    ids = torch.randint(-(2**63), 2**63 - 1, (int(offsets[-1]),), generator=generator)
    obs = torch.randn(rows, FEATURES, generator=generator)
    choice = (torch.rand(rows, generator=generator) * counts).long()
    columns = torch.randn(4, rows, generator=generator).unbind()
    obs, ids, offsets, choice, *columns = (changed(tensor, rng) for tensor in (obs, ids, offsets, choice, *columns))
    return Decisions(obs, ActionSets(ids, offsets), choice, *columns)


@pytest.fixture(scope="module")
def parts():
    from rlbench.evaluations.native import PackedNative
    from rlbench.updates.ppo_native import PPONative

    models = [ActionScorer(FEATURES, HIDDEN, torch.Generator().manual_seed(0)) for _ in range(2)]
    return models[0], PackedNative(models[0]), PPONative(models[1], PPOConfig(hidden=HIDDEN), None, None)


def outcome(call):
    """What a call gives, or None where it was refused; anything else is raised."""
    try:
        return call()
    except REFUSED:
        return None
    except RuntimeError as error:
        if "meta" not in str(error):  # a value of a tensor that has none was to be read
            raise
        return None


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_handed_over_is_computed_rightly_or_refused(seed, parts):
    model, evaluator, update = parts
    loop, accepted = Loop(model), 0
    for case in range(100):
        rng = random.Random(100 * seed + case)
        batch = decisions_of(rng)
        found = outcome(lambda batch=batch: evaluator.evaluate(batch.obs, batch.legal, batch.choice))
        if found is not None and len(batch.obs):
            accepted += 1
            for one, other in zip(found, loop.evaluate(batch.obs, batch.legal, batch.choice), strict=True):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4, equal_nan=True)
            sum(part.sum() for part in found).backward()
        outcome(lambda batch=batch: evaluator.log_probs(batch.obs, batch.legal))
        outcome(lambda batch=batch, rng=rng: evaluator.act(batch.obs, batch.legal, changed(torch.rand(3), rng)))
        outcome(lambda batch=batch: update(batch, 1e-4))
        order, sizes = changed(torch.randperm(5), rng), rng.choice([[5], [4, 1], [0, 5], [], [-1, 6], [9]])
        outcome(lambda batch=batch, order=order, sizes=sizes: update.epoch(batch, order, sizes, 1e-4))
    assert accepted > 5


def test_a_missing_choice_is_no_address(parts):
    _, evaluator, update = parts
    batch = decisions_of(random.Random(3))._replace(choice=None)
    with pytest.raises(ActionError, match="choice is of type NoneType"):
        evaluator.evaluate(batch.obs, batch.legal, None)
    with pytest.raises(ActionError, match="choice is of type NoneType"):
        update(batch, 1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_games_take_what_is_legal_alone(seed):
    for case in range(60):
        rng = random.Random(100 * seed + case)
        count = rng.choice([1, 3, 9])
        games = Othello(rng.choice([4, 6, 8]), opponent=rng.choice([None, "random", "greedy"])).native(count, case)
        _, legal = games.reset()
        for _ in range(3):
            ids = changed(legal.ids[legal.offsets[:-1]], rng)
            step = outcome(lambda games=games, ids=ids: games.step(ids))
            if step is not None:
                legal = step.legal
                assert legal.counts.min() >= 1 and len(legal.offsets) == count + 1
        masks = MaskGames(count, rng.choice([4, 6, 8]))
        squares = changed(torch.randint(-2, 70, (count,)), rng)
        outcome(lambda masks=masks, squares=squares: masks.step(squares))
