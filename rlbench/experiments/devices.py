"""CPU or GPU: the same training steps on both, and one update over batch sizes and hidden widths.

A training step is an env step and an update. The update that the sweep times is all that follows the env: sample, transfer,
forward, backward, optimizer. On a machine without CUDA the CPU is timed and the GPU's fields are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rlbench.config import DQNConfig
from rlbench.experiments.ratios import no_ratio, ratio_fields
from rlbench.machine import StealMeter, describe
from rlbench.measure import NO_CUDA
from rlbench.progress import Progress
from rlbench.results import Row, new_row
from rlbench.speedups import Choices
from rlbench.speedups.replay import random_transitions
from rlbench.timing import time_paired
from rlbench.trainers.dqn import DQN

ENV = "CartPole-v1"
REPLAY_ROWS = 10_000


def training_steps(
    steps: int = 1_000,
    *,
    batch_size: int = 128,
    hidden: int = 128,
    choices: str = "plain",
    rounds: int = 20,
    quick: bool = False,
    seed: int = 1,
    progress: bool | None = None,
) -> Row:
    """Time `steps` training steps of DQN on CartPole on the CPU and, where there is one, on the GPU, in pairs.

    Times are of the whole `steps`. The row's ratio is CPU time / GPU time.
    """

    def call(device: str) -> Callable[[], object]:
        config = _config(batch_size, hidden, seed).replace(
            total_timesteps=steps + batch_size, learning_starts=batch_size, train_frequency=1
        )
        return lambda: DQN(config, Choices.named(choices, device), ENV, device).train(progress=False)

    with Progress(rounds, f"{steps:,} training steps", "rounds", progress) as bar:
        return _compare("devices", call, rounds, quick, seed, bar, steps=steps, batch_size=batch_size, hidden=hidden)


def sweep(
    batch_sizes: Sequence[int],
    widths: Sequence[int],
    *,
    choices: str = "plain",
    rounds: int = 20,
    quick: bool = False,
    seed: int = 1,
    progress: bool | None = None,
) -> list[Row]:
    """A row for each batch size and hidden width: the time of one update on the CPU and its ratio to the GPU's."""
    rows = []
    with Progress(rounds * len(batch_sizes) * len(widths), "CPU or GPU", "rounds", progress) as bar:
        for hidden in widths:
            for batch_size in batch_sizes:

                def call(device: str, batch_size: int = batch_size, hidden: int = hidden) -> Callable[[], object]:
                    return one_update(batch_size, hidden, device, choices, seed)

                row = _compare("crossover", call, rounds, quick, seed, bar, batch_size=batch_size, hidden=hidden)
                rows.append(row)
    return rows


def one_update(
    batch_size: int, hidden: int, device: str = "cpu", choices: str = "plain", seed: int = 1
) -> Callable[[], object]:
    """A call that samples a minibatch, brings it to the device and takes one step of Adam."""
    agent = DQN(_config(batch_size, hidden, seed), Choices.named(choices, device), ENV, device)
    agent.replay.add(random_transitions(REPLAY_ROWS, agent.spec, seed))
    return lambda: agent.update(agent.sample())


def _config(batch_size: int, hidden: int, seed: int) -> DQNConfig:
    return DQNConfig(
        batch_size=batch_size, hidden=(hidden, hidden), buffer_size=REPLAY_ROWS, eval_episodes=0, seed=seed
    )


def _compare(
    kind: str,
    call: Callable[[str], Callable[[], object]],
    rounds: int,
    quick: bool,
    seed: int,
    bar: Progress,
    **fields: object,
) -> Row:
    machine, meter = describe(steal_interval_s=0), StealMeter()
    device = "cuda" if machine.has_cuda else "cpu"
    paired = time_paired(
        call("cpu"),
        {"gpu": call("cuda")} if machine.has_cuda else {},
        rounds=rounds,
        min_round_s=0.005 if quick else 0.02,
        device=device,
        seed=seed,
        progress=lambda done, total: bar.advance(1),
    )
    numbers = ratio_fields(paired, "gpu") if machine.has_cuda else no_ratio(paired, NO_CUDA)
    base = paired.ratio("baseline again")
    spread = {"cpu_aa_low": base.aa_low, "cpu_aa_high": base.aa_high, "quick": quick}
    return new_row(kind, device=device, seeds=[seed], machine=machine, meter=meter, **fields, **numbers, **spread)
