"""The whole of a search: races, a check that the winner learns the same as plain(), and a last race of the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rlbench.envs.source import env_source
from rlbench.machine import resolve_device
from rlbench.progress import Progress
from rlbench.results import Row
from rlbench.trainers.takes import check_takes
from rlbench.tuning.candidates import Space
from rlbench.tuning.contender import keeping_threads
from rlbench.tuning.finish import finish
from rlbench.tuning.race import BLOCK_S
from rlbench.tuning.search import Search
from rlbench.tuning.tuned import Tuned

LEAST_BLOCKS = 80  # that a budget is worth


def tune(
    config: Any,
    env: Any = "CartPole-v1",
    *,
    device: str = "auto",
    budget_s: float = 120.0,
    slots: Sequence[str] | None = None,
    statistical: bool = False,
    threads: Sequence[int] | None = None,
    eval_env: Any = None,
    block_s: float | None = None,
    progress: bool | None = None,
    should_stop: Callable[[], bool] | None = None,
    on_row: Callable[[Row], None] | None = None,
    seed: int = 0,
) -> Tuned:
    """Search for `budget_s` seconds; the last block may go beyond, and so may compiling, which cannot be cut short.

    Args:
        config, env, eval_env, device: the training, as for `DQN` and `PPO`.
        slots: those that may be changed; all where left out, and with them chunks.
        statistical: try variants that change numbers by more than rounding, such as lower precision; these are not rejected for
            how far they are from plain().
        threads: numbers of torch threads to try; 1 and the physical cores where left out.
        block_s: seconds of a block; where left out a quarter of a second, and less under a budget below 20 seconds.
        should_stop: asked after each block; what is best so far is then checked and returned.
        on_row: gets each row, one a candidate and race, as soon as it is known.
        seed: of the order of blocks.

    Raises ChoiceError for a slot that the trainer does not have, EnvError for an env that it does not take.
    """
    where, source = resolve_device(device), env_source(env)
    check_takes(config.trainer, source)
    space = Space(config, source, where, slots=slots, statistical=statistical, threads=threads)
    block_s = min(BLOCK_S, budget_s / LEAST_BLOCKS) if block_s is None else block_s
    with keeping_threads(), Progress(round(budget_s), "tune", "s", progress) as bar:
        search = Search(space, env, budget_s, block_s, bar, should_stop or (lambda: False), seed, on_row)
        try:
            search.run()
            return finish(search, eval_env)
        finally:
            search.close()
