"""A batch env as a trainer's collector that a loop of tensors steps by itself."""

from __future__ import annotations

from rlbench.envs.batch import BatchEnv
from rlbench.envs.spaces import EnvSpec


class TensorEnvs:
    """What a trainer asks of a collector but for `step`: the loop calls `core.step`, a pure function."""

    mask, masked, build_s = None, False, 0.0

    def __init__(self, core: BatchEnv, name: str) -> None:
        self.core, self.name, self.num_envs = core, name, core.num_envs
        self.envs = ()  # nothing that an evaluation could be given by mistake
        self.spec = EnvSpec((core.obs_size,), core.num_actions, 0, name, core.layout)
        self.obs = core.reset()[1].cpu().numpy()  # sync: before training, to be looked at
        self.finished: list[tuple[float, int]] = []

    def close(self) -> None:
        """Nothing is held but memory."""
