"""The Triton kernels, run by Triton's interpreter on the CPU, against plain PyTorch on bits of Python ints.

The interpreter must be asked for before Triton is imported, so that all cases run in one process of their own.
"""

import importlib.util
import json
import os
import subprocess
import sys

import pytest
import torch

from rlbench.evaluations.triton import INTERPRETER, why_not

CASES = {
    "one state of one action": (32, [[2**63]]),
    "counts of the handed case": (
        32,
        [[2**63], [1, 2, 2**64 - 1], [0, 5, 9], [1 << b for b in range(64)], [7, 2**40], [3]],
    ),
    "equal counts": (64, [[i, 2**63 + i, 2**64 - 1 - i] for i in range(5)]),
    "a block of actions to the last": (64, [[k, k + 2**32] for k in range(32)]),
    "a block of actions and one more": (128, [list(range(64)), [2**63 - 1]]),
    "one state of more than a block": (128, [[k * 0x9E3779B97F4A7C15 % 2**64 for k in range(70)]]),
    "a width that no block divides": (40, [[5, 6], [2**63 + 2**62], [1, 2, 3, 4]]),
    "a width below a block": (7, [[5, 6], [2**63 + 2**62], [1, 2, 3, 4]]),
}
SCRIPT = r"""
import json, sys
import torch
from rlbench.actions import ActionSets, pack
from rlbench.evaluations import triton_kernels
from rlbench.evaluations.triton import PackedTriton
from rlbench.models.action_scorer import ActionScorer

def reference(model, obs, lists, choice):
    log_prob, entropy, everything = [], [], []
    h = model.state(obs)
    for row, ids, place in zip(model.join(h), lists, choice.tolist()):
        bits = torch.tensor([[float(i >> b & 1) for b in range(64)] for i in ids])
        log_p = (torch.relu(row + bits @ model.action.T) @ model.score).log_softmax(0)
        log_prob.append(log_p[place]); entropy.append(-(log_p.exp() * log_p).sum()); everything.append(log_p.detach())
    return torch.stack(log_prob), torch.stack(entropy), model.value(h).squeeze(1), torch.cat(everything)

def gradients(model, log_prob, entropy, value):
    model.zero_grad()
    factor = torch.linspace(-1, 1.5, len(value))
    ((log_prob * factor).sum() + 0.7 * (entropy * factor.flip(0)).sum() + value.square().sum()).backward()
    return [p.grad.clone() for p in model.parameters()]

def off(ones, others):
    return max(float((a - b).abs().max()) for a, b in zip(ones, others, strict=True))

def made(width, states):
    generator = torch.Generator().manual_seed(width)
    return ActionScorer(9, (width,), generator), torch.randn(states, 9, generator=generator)

def case(width, lists):
    model, obs = made(width, len(lists))
    choice = torch.tensor([(3 * i + 1) % len(ids) for i, ids in enumerate(lists)])
    *expected, all_log_p = reference(model, obs, lists, choice)
    evaluator, sets = PackedTriton(model), pack(lists)
    found = evaluator.evaluate(obs, sets, choice)
    log_p, value = evaluator.log_probs(obs, sets)
    turned = pack([ids[::-1] for ids in lists])
    back = torch.cat([part.flip(0) for part in evaluator.log_probs(obs, turned)[0].split([len(i) for i in lists])])
    strided = ActionSets(torch.stack((sets.ids, sets.ids), 1)[:, 0], sets.offsets)
    single = [i for i, ids in enumerate(lists) if len(ids) == 1]
    return {
        "values": off(found, expected),
        "all": off((log_p, value), (all_log_p, expected[2])),
        "gradients": off(gradients(model, *found), gradients(model, *expected)),
        "turned": float((back - log_p).abs().max()),
        "strided": float((evaluator.log_probs(obs, strided)[0] - log_p).abs().max()),
        "single": [found.log_prob[single].tolist(), found.entropy[single].tolist()],
        "types": [str(t.dtype) for t in (*found, log_p, value)],
        "build": [evaluator.build_s, evaluator.recompiles],
    }

def one_action_alone():
    model, obs = made(32, 3)
    found = PackedTriton(model).evaluate(obs, pack([[1], [2**63], [2**64 - 1]]), torch.zeros(3, dtype=torch.int64))
    (found.log_prob.sum() + found.entropy.sum()).backward()
    return max(float(p.grad.abs().max()) for p in model.parameters() if p.grad is not None)

def shared_among_few_programs():
    triton_kernels.PROGRAMS = 2
    outcome = case(32, [[i * 77 + k for k in range(50)] for i in range(5)])  # four blocks
    triton_kernels.PROGRAMS = 256
    return outcome

def autocast():
    model, obs = made(64, 4)
    lists = [[5, 2**63], [1, 2, 3], [7], [9, 8]]
    choice = torch.tensor([1, 2, 0, 0])
    *expected, _ = reference(model, obs, lists, choice)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = PackedTriton(model).evaluate(obs, pack(lists), choice)
    grads = gradients(model, *found)
    exact = gradients(model, *expected)
    return {
        "ratio": float(((found.log_prob - expected[0]).exp() - 1).abs().max()),
        "types": [str(t.dtype) for t in found],
        "gradients": max(float((a - b).norm() / (b.norm() + 1e-6)) for a, b in zip(grads, exact)),
    }

def not_a_number():
    model, obs = made(32, 2)
    obs[1, 0] = float("nan")
    found = PackedTriton(model).evaluate(obs, pack([[1, 2], [3, 4]]), torch.tensor([0, 1]))
    return found.log_prob.isnan().tolist()

cases = json.load(sys.stdin)
out = {name: case(*given) for name, given in cases.items()}
out |= {f.__name__: f() for f in (one_action_alone, shared_among_few_programs, autocast, not_a_number)}
print(json.dumps(out))
"""
COMPILED = r"""
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from rlbench.evaluations import triton_kernels as kernels

kinds = {"joint": "*bf16", "ids": "*i64", "states": "*i64", "offsets": "*i64", "num_actions": "i32"}
for kernel, block in (
    (kernels.scores_kernel, kernels.BLOCK_A),
    (kernels.state_sums_kernel, kernels.FEW_A),
    (kernels.bit_sums_kernel, kernels.BLOCK_A),
):
    constants = {"H": 120, "BLOCK_A": block, "BLOCK_H": kernels.BLOCK_H, "PRECISION": "tf32"}
    signature = {n: "constexpr" if n in constants else kinds.get(n, "*fp32") for n in kernel.arg_names}
    source = ASTSource(kernel, signature, {(kernel.arg_names.index(n),): v for n, v in constants.items()})
    options = {"enable_fp_fusion": True}
    assert "mma" in triton.compile(source, target=GPUTarget("cuda", 80, 32), options=options).asm["ptx"]
print("compiled")
"""


def run(script, given="", **environment):
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed here: pip install triton (Linux)")
    names = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(
        [sys.executable, "-c", script], input=given, capture_output=True, text=True, env=names, timeout=200
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def outcomes():
    return json.loads(run(SCRIPT, json.dumps(CASES), **{INTERPRETER: "1"}))


@pytest.mark.parametrize("name", [*CASES, "shared_among_few_programs"])
def test_the_kernels_agree_with_plain_operations(outcomes, name):
    found = outcomes[name]
    for what in ("values", "all", "gradients", "turned"):
        assert found[what] < 1e-5, f"{what}: {found}"
    assert found["strided"] == 0.0
    assert set(found["types"]) == {"torch.float32"}
    assert found["build"] == [0.0, 0]  # nothing is compiled by the interpreter


@pytest.mark.parametrize(
    "name", ["one state of one action", "counts of the handed case", "a block of actions and one more"]
)
def test_one_legal_action_is_certain(outcomes, name):
    log_prob, entropy = outcomes[name]["single"]
    assert log_prob and set(map(abs, log_prob + entropy)) == {0.0}


def test_one_legal_action_has_no_gradient(outcomes):
    assert outcomes["one_action_alone"] == 0.0


def test_under_autocast_results_are_float32_and_the_first_ratio_is_near_one(outcomes):
    found = outcomes["autocast"]
    assert found["ratio"] < 2e-2 and set(found["types"]) == {"torch.float32"} and found["gradients"] < 0.1


def test_what_is_no_number_stays_so(outcomes):
    assert outcomes["not_a_number"] == [False, True]


@pytest.mark.slow
def test_the_kernels_compile_for_a_gpu_that_is_not_here():
    assert run(COMPILED, PYTHONWARNINGS="error::UserWarning").strip() == "compiled"


def test_without_cuda_the_reason_says_so(monkeypatch):
    monkeypatch.delenv(INTERPRETER, raising=False)
    assert why_not(torch.device("cpu")) == "Triton's kernels need CUDA, and this runs on cpu"
    monkeypatch.setattr("rlbench.evaluations.triton.compiling.why_not", lambda kind: f"no Triton for {kind}")
    assert why_not(torch.device("cuda")) == "no Triton for cuda"
    monkeypatch.setenv(INTERPRETER, "1")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "Triton is not installed" in why_not(torch.device("cpu"))
