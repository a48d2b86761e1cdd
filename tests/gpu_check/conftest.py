"""A check that takes the CPU for a GPU, so that everything but the device itself is exercised."""

import pytest
import torch

from rlbench.gpu_check.check import Check
from rlbench.machine import describe


class Pretending(Check):
    """Compares the CPU with itself."""

    cuda = True


@pytest.fixture
def check():
    """A quick check on the CPU, which can measure no CUDA."""
    return Check(torch.device("cpu"), describe(steal_interval_s=0), quick=True, section="x")


@pytest.fixture
def pretending():
    return Pretending(torch.device("cpu"), describe(steal_interval_s=0), quick=True, section="x")
