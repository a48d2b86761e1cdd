"""Memory does not grow with updates: between update 2,000 and update 10,000 nothing is kept that was not there before.

Two measures: the number of live tensors, which shows a single one kept an update, and the resident memory of the process,
which shows what is kept outside Python. Lists of rows of the history and of episodes grow with the run as they should; here
they stay far below the bound. Trainings that must be flat have a process of their own: in one that other tests have used, memory
that these let go, or that caches took, moves meanwhile.
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


@needs_statm
@pytest.mark.parametrize("choices", ["plain", "fast"])
def test_memory_is_flat(choices):
    ran = subprocess.run([sys.executable, __file__, choices], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    tensors, memory = json.loads(ran.stdout.splitlines()[-1])
    assert abs(tensors) <= MOST_TENSORS, f"{tensors} tensors more"
    assert memory <= MOST_BYTES, f"{memory:,} bytes more"


@needs_statm
def test_a_planted_leak_is_seen():
    """One loss kept an update, with the graph behind it."""
    trainer = DQN(CONFIG, Choices.fast().replace(loop="python"))
    kept, update = [], trainer.update

    def leaking(batch):
        kept.append(trainer.online(batch.obs).mean())
        update(batch)

    trainer.update = leaking
    tensors, memory = growth(trainer)
    assert tensors >= TO - FROM and memory > MOST_BYTES


if __name__ == "__main__":
    print(json.dumps(growth(DQN(CONFIG, Choices.named(sys.argv[1])))))
