"""What evaluating states with different numbers of actions costs, by their number and by the spread of counts (claims B2-B4).

Also here: what each layout of a batch computes, whether probability ratios are 1 before an update however they were made, and
what sorting a minibatch by count brings to each evaluator.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.machine import resolve_device
from rlbench.measure import measure
from rlbench.models.action_scorer import ActionScorer
from rlbench.models.encodings import encode_shift
from rlbench.results import Row
from rlbench.segments import pick
from rlbench.speedups import SPEEDUPS, evaluate
from rlbench.speedups import minibatch as minibatches
from rlbench.speedups.speedup import Speedup, no_needs

MANY = 1_400  # actions of one state: a board on which a move is a set of squares
CASE = (1, 3, 3, 64, 2, 1)  # counts of the states whose ratios are looked at
LOW, MIXED = "bfloat16 autocast", "float32 first, then bfloat16 autocast"
PRECISIONS = {
    "float32": (False, False),
    LOW: (True, True),
    MIXED: (False, True),
}  # acting, and being asked again: autocast?


def against(
    baseline: str, slot: str, sizes: Sequence[int], leave_out: Sequence[str] = (), **arguments: Any
) -> list[Row]:
    """`measure` of a slot against a variant of it, without some of the others. `arguments` are those of `measure`."""
    known = _first(baseline, SPEEDUPS[slot], leave_out)
    return measure([slot], sizes=sizes, speedups={slot: known}, **arguments)


def _first(baseline: str, known: Speedup, leave_out: Sequence[str] = ()) -> Speedup:
    """A slot with one of its variants in front, which a measurement of slots of its own takes as baseline."""
    others = {name: made for name, made in known.variants.items() if name not in (baseline, *leave_out)}
    return dataclasses.replace(known, variants={baseline: known.variants[baseline], **others})


def layouts(batches: Mapping[str, Sequence[int]]) -> list[Row]:
    """What each way to lay out a batch computes, a row for each named batch of counts."""
    rows = []
    for name, counts in batches.items():
        total, padded = sum(counts), len(counts) * max(counts)
        row = {"counts": name, "states": len(counts), "actions": total, "padded to": padded}
        rows.append({**row, "filled up": f"{1 - total / padded:.0%}", "calls grouped": len(set(counts)), "packed": 1})
    return rows


def _equal(states: int, generator: torch.Generator) -> Tensor:
    return torch.full((states,), 10)


def _two_kinds(states: int, generator: torch.Generator) -> Tensor:
    return torch.where(torch.rand(states, generator=generator) < 0.5, 1, 19)


def _mixed(states: int, generator: torch.Generator) -> Tensor:
    return torch.randint(1, evaluate.MOST_ACTIONS + 1, (states,), generator=generator)


def _one_large(states: int, generator: torch.Generator) -> Tensor:
    counts = _mixed(states, generator)
    counts[states // 2] = MANY
    return counts


def _othello(states: int, generator: torch.Generator) -> Tensor:
    from rlbench.envs.othello import Othello

    seed = int(torch.randint(2**31, (), generator=generator))  # sync: on the host already
    return Othello(8, opening_plies=20).batched(states, seed, "cpu").reset().legal.counts


EQUAL = "all 10"
SPREADS: dict[str, Callable[[int, torch.Generator], Tensor]] = {
    EQUAL: _equal,
    "1 or 19": _two_kinds,
    "Othello, 20 plies in": _othello,
    "1 to 20": _mixed,
    f"1 to 20, one of {MANY:,}": _one_large,
}


def counts_of(spread: str, states: int, seed: int = 0) -> Tensor:
    """Numbers of actions (B,) of that many states, by the name of their spread."""
    return SPREADS[spread](states, torch.Generator().manual_seed(seed))


def over_spreads(states: int, leave_out: Sequence[str] = (), baseline: str = "loop", **arguments: Any) -> list[Row]:
    """The slot `evaluate` against one of its variants at one number of states, for every spread of their counts.

    A row is one of `measure`, with `spread`, `groups` (different counts that occur) and `filled_up` (the share of a padded
    matrix that is no action). `arguments` are those of `measure`.
    """
    rows = []
    for spread in SPREADS:
        make = partial(_inputs, spread)
        known = dataclasses.replace(_first(baseline, evaluate.SPEEDUP, leave_out), make_inputs=make, check=check)
        counts = counts_of(spread, states, int(arguments.get("seed", 0))).tolist()
        facts = {"spread": spread, "groups": len(set(counts)), "filled_up": 1 - sum(counts) / (states * max(counts))}
        rows += [
            {**row, **facts} for row in measure(["evaluate"], sizes=[states], speedups={"evaluate": known}, **arguments)
        ]
    return rows


def check(expected: list[Tensor], actual: list[Tensor]) -> None:
    """Outcomes equal to 1e-5, as the slot has it, and gradients as far apart as a ten-thousandth of their length at most.

    The slot looks at each number of a gradient. Here some unit may lie within rounding of its relu's kink for some action,
    where both slopes are right, and a row of one weight's gradient differs by what that action adds.
    """
    for one, other in zip(expected[:3], actual[:3], strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5)
    assert [t.shape for t in actual] == [t.shape for t in expected], "gradients of other shapes"
    one, other = (torch.cat([gradient.reshape(-1) for gradient in parts[3:]]) for parts in (expected, actual))
    apart = float((other - one).norm() / one.norm())
    assert apart <= 1e-4, f"the gradient differs by {apart:.1g} of its length; accepted is 1e-4"


def _inputs(spread: str, size: int, seed: int, device: str) -> tuple:
    """Those of the slot, with counts of that spread."""
    model, obs, _, _, weights = evaluate.make_inputs(size, seed, device)
    legal, choice = _sets(counts_of(spread, size, seed), torch.Generator().manual_seed(seed))
    return model, obs, legal.to(device), choice.to(device), weights


def _sets(counts: Tensor, generator: torch.Generator) -> tuple[ActionSets, Tensor]:
    """Sets of random ids with those counts (B,), and a choice in each (B,)."""
    offsets = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
    ids = torch.randint(-(2**63), 2**63 - 1, (int(offsets[-1]),), generator=generator)  # sync: on the host already
    choice = (torch.rand(len(counts), generator=generator) * counts).long()
    return ActionSets(ids, offsets), choice


def first_ratios(
    counts: Sequence[int] = CASE, seed: int = 0, device: str = "cpu", leave_out: Sequence[str] = ()
) -> list[Row]:
    """Log-probabilities stored by every evaluator, and probability ratios to them of every evaluator before any update, the
    states in another order.

    Row: `acted`, `evaluated`, `precision` (a key of PRECISIONS; autocast where both can), `error` (the largest
    |ratio - 1|), `alone` (whether every state with one action has a log-probability of exactly 0).
    """
    where, generator = resolve_device(device), torch.Generator().manual_seed(seed)
    model = ActionScorer(evaluate.FEATURES, evaluate.HIDDEN, generator, encode_shift).to(where)
    obs = torch.randn(len(counts), evaluate.FEATURES, generator=generator).to(where)
    legal, _ = _sets(torch.tensor(counts), generator)
    legal, order = legal.to(where), torch.randperm(len(counts), generator=generator).to(where)
    uniform = torch.rand(len(counts), generator=generator).to(where)
    usable = [n for n in evaluate.VARIANTS if n not in leave_out and not evaluate.requires(n, None, None, where, None)]
    made = {name: evaluate.VARIANTS[name](model) for name in usable}
    rows = []
    for precision, low in PRECISIONS.items():
        names = [name for name in usable if not any(low) or name != "packed_native"]
        for acted in names:
            with torch.autocast(where.type, torch.bfloat16, enabled=low[0]):
                log_p, _ = made[acted].log_probs(obs, legal)
            choice = pick(log_p, legal.offsets, uniform)
            stored = log_p[legal.offsets[:-1] + choice][order]
            for evaluated in names:
                with torch.autocast(where.type, torch.bfloat16, enabled=low[1]):
                    now = made[evaluated].evaluate(obs[order], legal.take(order), choice[order]).log_prob.detach()
                row = {"acted": acted, "evaluated": evaluated, "precision": precision}
                single = legal.counts[order] == 1
                alone = torch.cat((now[single], stored[single])) == 0
                rows.append({**row, "error": float((now - stored).expm1().abs().max()), "alone": bool(alone.all())})
    return rows


def sorting(states: int, evaluators: Sequence[str] = ("grouped", "padded", "packed"), **arguments: Any) -> list[Row]:
    """Minibatches sorted by count against minibatches that are not, in an epoch over `states` decisions, an evaluator a row.

    The epoch makes the minibatches, evaluates each, and goes back. A row is one of `measure`, with `evaluator`.
    """
    rows = []
    for name in evaluators:
        speedup = dataclasses.replace(
            minibatches.SPEEDUP,
            variants={v: minibatches.VARIANTS[v] for v in ("index_views", "by_count")},
            make_inputs=_decisions,
            bind=partial(_epoch, evaluate.VARIANTS[name]),
            check=check,
            requires=no_needs,
            sameness="close",
        )
        found = measure(["minibatch"], sizes=[states], speedups={"minibatch": speedup}, **arguments)
        rows += [{**row, "evaluator": name} for row in found]
    return rows


def _decisions(size: int, seed: int, device: str) -> tuple:
    """A scorer, the rows of a rollout, an order, and like parts."""
    model = ActionScorer(minibatches.FEATURES, (64, 64), torch.Generator().manual_seed(seed)).to(device)
    return model, *minibatches.make_inputs(size, seed, device)


def _epoch(
    make: Callable[[ActionScorer], Any], take: Callable[..., Iterator], inputs: tuple
) -> Callable[[], list[Tensor]]:
    """The call hands out sums over the epoch of log-probabilities, entropies and values, and the parameters' gradients."""
    model, rows, order, sizes = inputs
    model = copy.deepcopy(model)
    evaluator, parameters = make(model), list(model.parameters())

    def there_and_back() -> list[Tensor]:
        sums = []
        for batch in take(rows, np.asarray(order), sizes):
            now = torch.stack([part.mean() for part in evaluator.evaluate(batch.obs, batch.legal, batch.choice)])
            sums.append([*now.detach(), *torch.autograd.grad(now.sum(), parameters)])
        return [torch.stack(parts).sum(0) for parts in zip(*sums, strict=True)]

    return there_and_back
