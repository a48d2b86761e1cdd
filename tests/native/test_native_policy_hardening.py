"""The native policy and PPO's update under sanitisers: odd shapes, and arrays that end where they must not be read beyond."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SANITISED = """
import random
import rlbench.native.build as build
sanitise = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
build.FLAGS = ("-O1", "-march=native", "-std=gnu11", "-shared", "-fPIC", *sanitise)
import torch
from rlbench.actions import ActionSets
from rlbench.batch import Decisions
from rlbench.config import PPOConfig
from rlbench.evaluations.native import PackedNative
from rlbench.models.action_scorer import ActionScorer
from rlbench.updates.ppo_native import PPONative
torch.manual_seed(1)
draw = random.Random(1)
for number in range(30):
    rows, d = draw.choice([1, 2, 7, 127, 128, 129, 300]), draw.choice([1, 3, 16, 33, 300])
    hidden = draw.choice([(1,), (5,), (17, 33), (16, 16), (240,), (3,) * 16, (130, 260)])
    most = draw.choice([1, 2, 16, 17, 40] + [1400] * (rows < 8))
    counts = torch.randint(1, most + 1, (rows,))
    counts[0] = most
    offsets = torch.cat((torch.zeros(1, dtype=torch.int64), counts.cumsum(0)))
    ids = torch.randint(-(2**63), 2**63 - 1, (int(offsets[-1]),))
    ids[0], ids[-1] = draw.choice([0, -1, -(2**63)]), draw.choice([0, -1, -(2**63)])
    obs = torch.randn(rows, d) * (torch.rand(rows, d) < draw.choice([0.0, 0.1, 0.5, 1.0]))
    sets, choice = ActionSets(ids, offsets), counts - 1
    model = ActionScorer(d, hidden)
    native = PackedNative(model)
    native.log_probs(obs, sets)
    native.act(obs, sets, torch.rand(rows))
    found = native.evaluate(obs, sets, choice)
    sum(part.sum() for part in found).backward()
    noise = torch.randn(3, rows)
    batch = Decisions(obs, sets, choice, found.log_prob.detach() + 0.1, *noise)
    config = PPOConfig(clip_vloss=draw.random() < 0.5, norm_adv=draw.random() < 0.5, max_grad_norm=draw.choice([0.0, 0.5]))
    update = PPONative(model, config, None, None)
    update(batch, 1e-3)
    cut = draw.randrange(1, rows + 1)
    update.epoch(batch, torch.randperm(rows), [cut, rows - cut] if cut < rows else [rows], 1e-3)
    if rows > 1:
        few = Decisions(*(f.take(torch.arange(2)) if isinstance(f, ActionSets) else f[:2] for f in batch))
        update(few, 1e-3)
    update(batch._replace(obs=obs * float("nan")), 1e-3)
print("clean")
"""


def library(name):
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
    return found if Path(found).is_absolute() else None


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("gcc") and sys.platform == "linux"), reason="needs gcc's sanitisers")
def test_sanitisers_find_nothing_over_odd_shapes(tmp_path):
    preload = [library("libasan.so"), library("libubsan.so")]
    if None in preload:
        pytest.skip("gcc has no sanitisers here")
    env = {
        **os.environ,
        "LD_PRELOAD": " ".join(preload),
        "ASAN_OPTIONS": "detect_leaks=0",
        "RLBENCH_CACHE": str(tmp_path),
    }
    done = subprocess.run([sys.executable, "-c", SANITISED], env=env, capture_output=True, text=True, timeout=300)
    assert done.stdout.endswith("clean\n"), done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("march", ["x86-64-v3", "x86-64"])
def test_it_computes_the_same_without_wide_vectors(march, tmp_path):
    """Processors with shorter vectors, for which the compiler splits those of the source."""
    if os.uname().machine != "x86_64":
        pytest.skip("flags of x86-64")
    script = """
import sys
import rlbench.native.build as build
build.FLAGS = tuple(f"-march={sys.argv[1]}" if "march" in flag else flag for flag in build.FLAGS)
import torch
from rlbench.actions import pack
from rlbench.evaluations.loop import Loop
from rlbench.evaluations.native import PackedNative
from rlbench.models.action_scorer import ActionScorer
model = ActionScorer(7, (33, 20), torch.Generator().manual_seed(1))
obs, sets = torch.randn(3, 7), pack([[2**63, 5], [1], list(range(40))])
for one, other in zip(PackedNative(model).log_probs(obs, sets), Loop(model).log_probs(obs, sets)):
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
print("same")
"""
    env = {**os.environ, "RLBENCH_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", script, march]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    if "illegal instruction" in done.stderr.lower() or done.returncode == -4:
        pytest.skip(f"this processor has no {march}")
    assert done.stdout == "same\n", done.stderr[-3000:]
