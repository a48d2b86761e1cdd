"""Whole trainings under several Choices or Configs: plans say which, `study` runs them in pairs, `summarise` compares."""

from rlbench.study.plans import MODES, plan
from rlbench.study.run import study
from rlbench.study.summary import summarise
from rlbench.study.variants import Plan, Variant

__all__ = ["MODES", "Plan", "Variant", "plan", "study", "summarise"]
