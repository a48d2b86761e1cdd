"""Losses of a published mixed-precision training loop, as it was printed and as it should be; and what bits cost a gradient."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rlbench.batch import Transitions
from rlbench.config import DQNConfig
from rlbench.losses import next_values, td_error, td_loss, td_target
from rlbench.machine import StealMeter, describe, resolve_device
from rlbench.models import mlp
from rlbench.results import Row, new_row
from rlbench.speedups import SPEEDUPS
from rlbench.speedups.optimizer import for_loop
from rlbench.speedups.update import make_inputs, split
from rlbench.updates.eager import EagerUpdate


def loss_as_printed(network: nn.Module, batch: Transitions) -> Tensor:
    """The loss of a mixed-precision sample loop for DQN that is passed around (claim A12).

    Its prediction is all of q(s, ·), (B, A), its target (B, 1): every action's value is pulled to the
    target of the one that was taken. Its target comes from the network that is trained, with gradients.
    """
    prediction = network(batch.obs)  # (B, A)
    best = network(batch.next_obs).amax(dim=1, keepdim=True)  # (B, 1)
    target = batch.reward[:, None] + batch.discount[:, None] * (1 - batch.terminated[:, None]) * best
    return F.mse_loss(prediction, target.expand_as(prediction))  # what broadcasting makes of (B, A) and (B, 1)


def loss_mended(network: nn.Module, target_network: nn.Module, batch: Transitions) -> Tensor:
    """The loss that was meant: the taken action's value, against a target of another network, without gradients."""
    with torch.no_grad():
        value = next_values(target_network(batch.next_obs), None, batch.next_mask)
        target = td_target(batch.reward, batch.discount, batch.terminated, value)
    return td_loss(td_error(network(batch.obs), batch.action, target))


def gradient_errors(widths: Sequence[int], *, device: str = "auto", batch_size: int = 128, seed: int = 1) -> list[Row]:
    """How far a gradient in each precision lies from that in float64, a row for each variant and width.

    Row: variant, width, error (the length of the difference, over the gradient's), lost (share of the gradient's numbers that
    became 0), not_measured.
    """
    where = resolve_device(device)
    slot, machine = SPEEDUPS["precision"], describe(steal_interval_s=0)
    rows = []
    for width in widths:
        exact = _gradient(width, batch_size, seed, where, None)
        for name in slot.variants:
            meter, reason = StealMeter(), slot.requires(name, None, None, where, None)
            found = None if reason else _gradient(width, batch_size, seed, where, name)
            error = float("nan") if found is None else float((found - exact).norm() / exact.norm())
            lost = float("nan") if found is None else float(((found == 0) & (exact != 0)).double().mean())
            fields = {"variant": name, "width": width, "error": error, "lost": lost, "not_measured": reason}
            rows.append(new_row("gradient", device=where, seeds=[seed], machine=machine, meter=meter, **fields))
    return rows


def _gradient(width: int, batch_size: int, seed: int, device: torch.device, variant: str | None) -> Tensor:
    """The gradient of the mended loss, (P,) float64: in a variant of the slot, or all in float64."""
    generator = torch.Generator().manual_seed(seed)
    network, target = (mlp(16, (width, width), 3, generator).to(device) for _ in range(2))
    batch = split(make_inputs(batch_size, seed, str(device))[2], batch_size)[0]
    if variant is None:
        batch = Transitions(*(t if t is None or not t.is_floating_point() else t.double() for t in batch))
        loss_mended(network.double(), target.double(), batch).backward()
        scale = 1.0
    else:
        precision = SPEEDUPS["precision"].variants[variant](device)
        scaler = torch.amp.GradScaler(device.type, enabled=precision.scaled, init_scale=2.0**10)
        with precision.setting():
            with precision.forward():
                loss = loss_mended(network, target, batch)
            scaler.scale(loss).backward()
        scale = scaler.get_scale()
    return torch.cat([p.grad.double().reshape(-1) for p in network.parameters()]) / scale


def scaled_steps(
    updates: int = 20, *, reward_size: float = 100.0, width: int = 64, batch_size: int = 32, seed: int = 1
) -> list[Row]:
    """The first updates in float16 on the CPU, with rewards of about `reward_size`, and a scale that begins at 65,536.

    A row an update: update, scale (before it), skipped and taken (so far, with it).
    """
    device, machine, meter = torch.device("cpu"), describe(steal_interval_s=0), StealMeter()
    generator = torch.Generator().manual_seed(seed)
    online, target = (mlp(16, (width, width), 3, generator) for _ in range(2))
    update = EagerUpdate(
        online, target, DQNConfig(), for_loop, SPEEDUPS["precision"].variants["float16_scaled"](device)
    )
    given = make_inputs(batch_size, seed, "cpu")[2]
    batches = split(given._replace(reward=reward_size * given.reward), batch_size)
    rows = []
    for k in range(updates):
        scale = update.scaler.get_scale()
        update(batches[k % len(batches)], 1e-3)
        fields = {"update": k + 1, "scale": scale, "skipped": int(update.skipped), "taken": int(update.taken)}
        rows.append(new_row("scaled", device=device, seeds=[seed], machine=machine, meter=meter, **fields))
    return rows
