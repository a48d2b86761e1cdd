"""Memory does not grow with updates: between update 2,000 and update 10,000 nothing is kept that was not there before.

Two measures: the number of live tensors, which shows a single one kept an update, and the resident memory of the process,
which shows what is kept outside Python. Lists of rows of the history and of episodes grow with the run as they should; here
they stay far below the bound. Each training has a process of its own: in one that other tests have used, memory that these let
go, or that caches took, moves meanwhile.
"""

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rlbench import Choices, DQNConfig
from rlbench.trainers.dqn import DQN

FROM, TO = 2_000, 10_000  # updates
MOST_BYTES = 4_000_000  # of growth between the two: 500 bytes an update, less than one tensor kept in each
MOST_TENSORS = 20
STATM = Path("/proc/self/statm")
# Replay is full, and every page of it touched, long before update 2,000.
CONFIG = DQNConfig(
    total_timesteps=1_020, buffer_size=100, batch_size=8, hidden=(8,), learning_starts=20, train_frequency=10,
    gradient_steps=100, learning_rate=1e-4, log_frequency=10, eval_episodes=0,
)  # fmt: skip


def resident():
    """Bytes of this process in memory."""
    import resource

    return int(STATM.read_text().split()[1]) * resource.getpagesize()


def growth(trainer):
    """(tensors, bytes) gained between the two updates."""
    marks = []

    def on_log(state):
        if trainer.updates >= (TO if marks else FROM) and len(marks) < 2:
            gc.collect()
            marks.append((sum(issubclass(type(each), torch.Tensor) for each in gc.get_objects()), resident()))

    history = trainer.train(progress=False, on_log=on_log)
    assert history.updates == TO and len(marks) == 2
    (tensors, before), (tensors_after, after) = marks
    return tensors_after - tensors, after - before


needs_statm = pytest.mark.skipif(not STATM.exists(), reason="the system does not say how much memory a process has")


def measured(*words):
    """What this file prints as a script: the tensors and bytes gained."""
    ran = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@needs_statm
@pytest.mark.parametrize("choices", ["plain", "fast"])
def test_memory_is_flat(choices):
    tensors, memory = measured(choices)
    assert abs(tensors) <= MOST_TENSORS, f"{tensors} tensors more"
    assert memory <= MOST_BYTES, f"{memory:,} bytes more"


@needs_statm
def test_a_planted_leak_is_seen():
    tensors, memory = measured("fast", "leak")
    assert tensors >= TO - FROM and memory > MOST_BYTES


def plant_a_leak(trainer):
    """One loss kept an update, with the graph behind it."""
    kept, update = [], trainer.update

    def leaking(batch):
        kept.append(trainer.online(batch.obs).mean())
        update(batch)

    trainer.update = leaking


if __name__ == "__main__":
    name, *leak = sys.argv[1:]
    trainer = DQN(CONFIG, Choices.named(name).replace(loop="python") if leak else Choices.named(name))
    if leak:
        plant_a_leak(trainer)
    print(json.dumps(growth(trainer)))
