"""One command that tells what a GPU is worth here: is it right, is it faster, from which size on, and what does it cost?

Needs torch, numpy and pandas alone, so that it runs on a rented machine as it comes.
"""

from rlbench.gpu_check.recorded import recorded
from rlbench.gpu_check.run import SECTIONS, gpu_check, has_failed
from rlbench.gpu_check.text import summary

__all__ = ["SECTIONS", "gpu_check", "has_failed", "recorded", "summary"]
