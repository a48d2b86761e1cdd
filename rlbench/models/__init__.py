"""Networks. Plain functions that build `nn.Module`s from sizes and a generator."""

from rlbench.models.mlp import forward_flops, mlp, parameter_count

__all__ = ["forward_flops", "mlp", "parameter_count"]
