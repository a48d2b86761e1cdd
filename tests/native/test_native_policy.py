"""The native policy against PyTorch in double precision, over odd shapes; its exponential against the library's."""

import copy
import ctypes
import itertools
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from rlbench.actions import ActionSets, pack
from rlbench.evaluations.native import PackedNative
from rlbench.models.action_scorer import ActionScorer
from rlbench.native import build
from rlbench.native.policy import Parameters, Shape, why_no_policy

FEW, RANDOM, ALL = "few", "random", "all"  # bits of an id that are set; all: 63 or 64 of them


def draw_ids(count, bits, generator):
    ids = torch.randint(-(2**63), 2**63 - 1, (count,), generator=generator)
    one, other = 1 << torch.randint(0, 64, (2, count), generator=generator)
    if bits == FEW:
        return one | other | (ids & 1 << 63)
    return ids if bits == RANDOM else torch.where(ids % 2 == 0, -1, ~one)


def draw(obs_size, counts, bits=RANDOM, seed=0):
    """obs (B, D), sets, choice (B,)."""
    generator = torch.Generator().manual_seed(seed)
    counts = torch.tensor(counts)
    offsets = torch.cat((torch.zeros(1, dtype=torch.int64), counts.cumsum(0)))
    ids = draw_ids(int(offsets[-1]), bits, generator)
    choice = (torch.rand(len(counts), generator=generator) * counts).long()
    return torch.randn(len(counts), obs_size, generator=generator), ActionSets(ids, offsets), choice


def in_doubles(model, obs, legal, choice):
    """(log-probabilities of all actions, of the choices, entropies, values), a state at a time."""
    model = copy.deepcopy(model).double()
    log_p, chosen, entropy, value = [], [], [], []
    for i, (a, b) in enumerate(itertools.pairwise(legal.offsets.tolist())):
        h = model.state(obs[i].double())
        bits = torch.tensor([[id >> k & 1 for k in range(64)] for id in legal.ids[a:b].tolist()]).double()
        scores = torch.relu(model.join(h) + bits @ model.action.T) @ model.score
        log_p.append(scores.log_softmax(0))
        chosen.append(log_p[-1][choice[i]])
        entropy.append(-(log_p[-1].exp() * log_p[-1]).sum())
        value.append(model.value(h)[0])
    return model, torch.cat(log_p), torch.stack(chosen), torch.stack(entropy), torch.stack(value)


SHAPES = [
    (128, (64, 64), [*range(1, 21)] * 15, FEW),  # more than one block of states
    (128, (128, 128), [5, 1, 30], RANDOM),
    (1, (5,), [1], RANDOM),  # one state, one action
    (1, (17,), [3, 1, 1, 64, 2, 1], ALL),
    (3, (33, 5, 17), [1400, 2, 1, 7], FEW),
    (300, (16, 300), [4, 9], RANDOM),  # an inner dimension walked in two parts
    (5, (240,), [15, 16, 17, 33], RANDOM),  # 8, 4, 2 and 1 vectors
    (7, (1,), [2, 3], FEW),
    (2, (3,) * 16, [2, 1], RANDOM),  # as many layers as there is room for
]


@pytest.mark.parametrize(("obs_size", "hidden", "counts", "bits"), SHAPES)
def test_it_equals_pytorch_in_doubles(obs_size, hidden, counts, bits):
    model = ActionScorer(obs_size, hidden, torch.Generator().manual_seed(1))
    obs, legal, choice = draw(obs_size, counts, bits)
    evaluator = PackedNative(model)
    exact, log_p, *expected = in_doubles(model, obs, legal, choice)
    for one, other in zip(evaluator.log_probs(obs, legal), (log_p, expected[2]), strict=True):
        torch.testing.assert_close(one.double(), other.detach(), rtol=1e-5, atol=2e-6)
    found = evaluator.evaluate(obs, legal, choice)
    slopes = torch.randn(3, len(counts), generator=torch.Generator().manual_seed(2))
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=2e-6)
    sum((by * one).sum() for by, one in zip(slopes, found, strict=True)).backward()
    sum((by * one).sum() for by, one in zip(slopes, expected, strict=True)).backward()
    for (name, one), other in zip(model.named_parameters(), exact.parameters(), strict=True):
        scale = float(other.grad.abs().max()) + 1e-3
        torch.testing.assert_close(one.grad.double() / scale, other.grad / scale, rtol=0, atol=2e-5, msg=name)


def test_the_highest_bit_is_a_bit_like_the_others():
    """Of the weights only those of bit 63 and bit 0 differ from 0, so that scores can be read off."""
    model = ActionScorer(2, (3,), torch.Generator().manual_seed(0))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.action[1, 63], model.action[2, 0], model.score[:] = 2.0, 3.0, torch.tensor([5.0, 7.0, 11.0])
    log_p, value = PackedNative(model).log_probs(torch.ones(1, 2), pack([[2**63, 1, 2**63 + 1, 0, 2**62]]))
    scores = torch.tensor([14.0, 33.0, 47.0, 0.0, 0.0])
    torch.testing.assert_close(log_p, scores.log_softmax(0))
    assert value.tolist() == [0.0]


def test_one_action_is_certain_exactly():
    model = ActionScorer(4, (9,), torch.Generator().manual_seed(0))
    evaluator = PackedNative(model)
    obs, legal, choice = draw(4, [1, 1, 1])
    found = evaluator.evaluate(obs, legal, choice)
    assert found.log_prob.tolist() == found.entropy.tolist() == [0.0] * 3
    (found.log_prob.sum() + found.entropy.sum()).backward()
    assert all(not parameter.grad.any() for parameter in model.parameters())


def test_unlikely_actions_and_what_is_not_a_number():
    model = ActionScorer(4, (8,), torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.score *= 1e4
    obs, legal, choice = draw(4, [30] * 4)
    _, log_p, _, entropy, _ = in_doubles(model, obs, legal, choice)
    assert log_p.min() < -1000
    evaluator = PackedNative(model)
    torch.testing.assert_close(evaluator.log_probs(obs, legal)[0].double(), log_p.detach(), rtol=1e-5, atol=1e-2)
    found = evaluator.evaluate(obs, legal, choice)
    torch.testing.assert_close(found.entropy.double(), entropy, rtol=1e-2, atol=1e-4)
    found.entropy.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    obs[2, 1] = float("nan")
    log_p, value = evaluator.log_probs(obs, legal)
    assert log_p.view(4, 30).isnan().all(1).tolist() == [False, False, True, False]
    assert value.isnan().tolist() == [False, False, True, False]


def test_the_exponential(tmp_path):
    """To a relative error of 2e-7, 1 at 0 exactly, 0 far below."""
    source = tmp_path / "exponential.c"
    source.write_text(
        '#include "policy_actions.h"\n'
        "void all(const float *x, float *y, int64_t n) {\n"
        "    for (int64_t i = 0; i < n; i += WIDE) store(y + i, exponential(load(x + i)));\n"
        "}\n"
    )
    folder = Path(build.__file__).parent
    command = [build.find_compiler(), "-O3", "-march=native", "-std=gnu11", "-shared", "-fPIC", "-w", f"-I{folder}"]
    subprocess.run([*command, "-o", str(tmp_path / "e.so"), str(source), "-lm"], check=True)
    x = np.linspace(-86.9, 0, 1 << 20).astype(np.float32)
    x[:4] = 0.0, -200.0, -np.inf, np.nan
    y = np.empty_like(x)
    ctypes.CDLL(str(tmp_path / "e.so")).all(
        ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_int64(len(x))
    )
    assert y[:3].tolist() == [1.0, 0.0, 0.0] and np.isnan(y[3])
    exact = np.exp(x[4:].astype(np.float64))
    assert np.abs(y[4:] / exact - 1).max() < 2e-7


def test_where_parameters_lie():
    model = ActionScorer(5, (17, 9), torch.Generator().manual_seed(0))
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    found = Parameters(model)
    assert [name for name, *_ in Shape.of(model).parts()] == list(before)
    own = found.address(found.tensors())
    assert own == found.own.data_ptr()  # a copy
    copied = found.own.clone()
    vector = found.adopt()
    assert found.address(found.tensors()) == vector.data_ptr() and torch.equal(vector, copied)
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())
    assert int((vector != 0).sum()) == sum(parameter.numel() for parameter in before.values())
    vector.zero_()
    assert all(not parameter.any() for parameter in model.parameters())


def test_models_it_does_not_take():
    class Other(ActionScorer):
        pass

    model = ActionScorer(3, (4,))
    assert why_no_policy(model) is None and why_no_policy(hidden=(4,), device=torch.device("cpu")) is None
    assert "not a Other" in why_no_policy(Other(3, (4,)))
    assert "float64" in why_no_policy(ActionScorer(3, (4,)).double())
    assert "this runs on cuda" in why_no_policy(device=torch.device("cuda"))
    assert "room for 16 hidden layers, and hidden has 17" in why_no_policy(hidden=(4,) * 17)
    assert "the model has 17" in why_no_policy(ActionScorer(3, (4,) * 17))
    model.state[1] = torch.nn.Tanh()
    assert "Linear and ReLU" in why_no_policy(model)
    with pytest.raises(TypeError, match="Linear and ReLU"):
        PackedNative(model)


def test_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    build.load.cache_clear()
    assert "no C compiler" in why_no_policy()
    build.load.cache_clear()
