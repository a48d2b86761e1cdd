"""The pure update and what is made of it: equal to eager PyTorch over odd settings, no recompilation, nothing overwritten."""

import copy

import pytest
import torch

from rlbench import compile as compiling
from rlbench.batch import Layout, Transitions
from rlbench.buffers import RingTorch, RowSpec
from rlbench.compile import why_not
from rlbench.config import DQNConfig
from rlbench.models import mlp
from rlbench.models.networks import make_network
from rlbench.speedups import SPEEDUPS, Choices
from rlbench.speedups.conversion import StackOnce
from rlbench.speedups.optimizer import for_loop, foreach
from rlbench.speedups.replay import random_transitions
from rlbench.speedups.update import requires, split
from rlbench.updates.compiled import ChunkedUpdate, CompiledUpdate, compiled_for, forget_compiled, parts_of
from rlbench.updates.eager import EagerUpdate
from rlbench.updates.functional import FlatNetwork, Settings, adam, td_update, td_updates
from rlbench.updates.graph import GraphUpdate
from rlbench.updates.native import Native
from rlbench.updates.precision import Precision

CPU = torch.device("cpu")
SPEC = RowSpec(7, 3, layout=Layout(window=2, features=3, own=1))
NEEDS_COMPILER = pytest.mark.skipif(why_not("cpu") is not None, reason=str(why_not("cpu")))


@pytest.fixture(autouse=True)
def traced_alone(request, monkeypatch):
    """What is compiled here is traced and run by PyTorch, which takes a second, but in the slow tests."""
    if "slow" not in request.keywords:
        monkeypatch.setattr(compiling, "BACKEND", "eager")
    forget_compiled()
    yield
    forget_compiled()


def batch_of(rows, seed, masked=False, weighted=False):
    batch = StackOnce()(random_transitions(rows, SPEC._replace(masked=masked), seed))
    return batch._replace(weight=torch.linspace(0.1, 1.0, rows)) if weighted else batch


def networks(config, count=2):
    return [make_network(config, SPEC, torch.Generator().manual_seed(k)) for k in range(count)]


def assert_same(ours, theirs, rtol=1e-4, atol=2e-5):
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=rtol, atol=atol)


@pytest.mark.parametrize("network", ["mlp", "dueling", "conv"])
@pytest.mark.parametrize(("masked", "weighted"), [(False, True), (True, False)])
@pytest.mark.parametrize(("double", "huber", "norm"), [(True, True, 0.05), (False, False, 0.0), (True, False, 10.0)])
@pytest.mark.parametrize("rows", [1, 9])
def test_the_pure_update_equals_eager_pytorch(network, masked, weighted, double, huber, norm, rows):
    config = DQNConfig(network=network, hidden=(17, 5), double_dqn=double, huber=huber, max_grad_norm=norm)
    online, target = networks(config)
    eager = EagerUpdate(copy.deepcopy(online), target, config, for_loop)
    flat = FlatNetwork(online)
    parameters, slow = flat.adopt(online), flat.adopt(copy.deepcopy(target))
    moments = flat.start(parameters)
    for k in range(5):
        batch = batch_of(rows, k, masked, weighted)
        kept = parameters.clone()
        rate, number = torch.tensor(1e-3 / (k + 1), dtype=torch.float64), torch.tensor(k + 1)
        after, moments, updated = td_update(flat, parameters, slow, moments, number, batch, rate, Settings.of(config))
        assert torch.equal(parameters, kept)  # pure
        parameters.copy_(after)  # and so into the module
        for one, other in zip(updated, eager(batch, 1e-3 / (k + 1)), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
            assert not one.requires_grad
    assert_same(online, eager.online)


def test_adam_by_hand():
    """Two steps of rate 0.1 on gradients 2 and -1. First: m = 0.2, v = 0.004, corrected 2 and 4: a step of 0.1 · 2 / 2.
    Second: m = 0.9 · 0.2 - 0.1 = 0.08, v = 0.999 · 0.004 + 0.001 = 0.004996; corrected 0.08 / 0.19 and 0.004996 / 0.001999.
    """
    rate = torch.tensor(0.1, dtype=torch.float64)
    flat = FlatNetwork(mlp(1, (), 1))
    start = torch.zeros(1)
    one, moments = adam(start, flat.start(start), torch.tensor([2.0]), torch.tensor(1), rate)
    assert one.item() == pytest.approx(-0.1, rel=1e-6)
    two, moments = adam(one, moments, torch.tensor([-1.0]), torch.tensor(2), rate)
    assert moments.first.item() == pytest.approx(0.08) and moments.second.item() == pytest.approx(0.004996)
    assert two.item() == pytest.approx(-0.1 - 0.1 * (0.08 / 0.19) / (0.004996 / 0.001999) ** 0.5, rel=1e-5)


def test_a_module_is_a_view_of_the_vector():
    (net,) = networks(DQNConfig(hidden=(5,)), 1)
    before, x = [p.detach().clone() for p in net.parameters()], torch.randn(4, 7)
    expected = net(x)
    flat = FlatNetwork(net)
    vector = flat.adopt(net)
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), before, strict=True))
    torch.testing.assert_close(flat(vector, x), expected)
    assert len(vector) == 48 + 16 + 16 + 16 and vector.count_nonzero() <= sum(p.numel() for p in net.parameters())
    vector.zero_()
    assert not net(x).any() and flat.key == FlatNetwork(copy.deepcopy(net)).key
    others = [make_network(DQNConfig(network=n, hidden=(5,)), SPEC) for n in ("dueling", "conv")]
    assert len({flat.key, *(FlatNetwork(other).key for other in others)}) == 3
    with pytest.raises(TypeError, match="buffers"):
        FlatNetwork(torch.nn.BatchNorm1d(3))


@pytest.mark.parametrize("variant", [CompiledUpdate, ChunkedUpdate])
@pytest.mark.parametrize("network", ["mlp", "dueling", "conv"])
def test_compiled_updates_equal_eager_ones(variant, network):
    config = DQNConfig(network=network, hidden=(6,), batch_size=4, gradient_steps=3, huber=True)
    nets = networks(config)
    ours, theirs = ([copy.deepcopy(net) for net in nets] for _ in range(2))
    update, eager = variant(*ours, config, for_loop), EagerUpdate(*theirs, config, for_loop)
    for k in range(3):
        rows = batch_of(12, k, masked=True, weighted=True)
        found = [update(batch, 1e-3) for batch in split(rows, 4 * update.chunk)]
        expected = [eager(batch, 1e-3) for batch in split(rows, 4)]
        for field in range(3):
            one, other = (torch.cat([u[field].reshape(-1) for u in updates]) for updates in (found, expected))
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    assert_same(ours[0], theirs[0])
    assert_same(ours[1], nets[1], 0, 0)  # the target network is read alone
    assert update.taken == eager.taken == 9 and update.skipped == 0
    assert update.recompiles == 0 and update.build_s > 0 == eager.build_s


def hygiene(make, nets, batches):
    """Nothing is compiled again over changing rates, what was handed out stays, and loaded weights take effect."""
    ours, theirs = ([copy.deepcopy(net) for net in nets] for _ in range(2))
    config = DQNConfig(hidden=(6,), batch_size=4, gradient_steps=2)
    update, eager = make(*ours, config, for_loop), EagerUpdate(*theirs, config, for_loop)
    kept, copies = [], []
    for k in range(200):
        updated = update(batches[k % 3], 1e-3 * (1 - k / 200))
        kept.append(updated)
        copies.append([t.clone() for t in updated])
        for batch in split(batches[k % 3], 4):
            eager(batch, 1e-3 * (1 - k / 200))
        if k == 100:
            fresh = make_network(config, SPEC, torch.Generator().manual_seed(9)).state_dict()
            for net in (ours[0], theirs[0], ours[1], theirs[1]):
                net.load_state_dict(fresh)
            moved = [t.clone() for t in update.moments]
            assert any(t.any() for t in moved)
    assert update.recompiles == 0
    assert all(torch.equal(a, b) for u, c in zip(kept, copies, strict=True) for a, b in zip(u, c, strict=True))
    assert_same(ours[0], theirs[0], 1e-3, 1e-4)


def test_hygiene_of_a_chunk():
    hygiene(ChunkedUpdate, networks(DQNConfig(hidden=(6,))), [batch_of(8, k) for k in range(3)])


@pytest.mark.slow
@NEEDS_COMPILER
def test_hygiene_of_a_chunk_compiled():
    hygiene(ChunkedUpdate, networks(DQNConfig(hidden=(6,))), [batch_of(8, k) for k in range(3)])


class Recorded(GraphUpdate):
    """A graph's handling of memory without CUDA: the round runs again at each replay and fills the same outputs."""

    def capture(self):
        before = [t.clone() for t in self.changing()]
        self.outputs = super(GraphUpdate, self).run(self.inputs)
        torch._foreach_copy_(self.changing(), before)

        def replay():
            again = super(GraphUpdate, self).run(self.inputs)
            torch._foreach_copy_(list(self.outputs), list(again))

        return replay

    def function(self, count, batch):
        return super(GraphUpdate, self).function(count, batch)


def test_hygiene_of_what_is_replayed():
    hygiene(Recorded, networks(DQNConfig(hidden=(6,))), [batch_of(8, k) for k in range(3)])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.slow
def test_hygiene_of_a_graph():
    nets = [net.cuda() for net in networks(DQNConfig(hidden=(6,)))]
    batches = [Transitions(*(None if t is None else t.cuda() for t in batch_of(8, k))) for k in range(3)]
    hygiene(GraphUpdate, nets, batches)


def test_a_round_longer_than_a_call_is_split():
    assert [parts_of(k, 8) for k in (1, 8, 9, 16, 20)] == [[1], [8], [5, 4], [8, 8], [7, 7, 6]]
    config = DQNConfig(hidden=(3,), batch_size=2, gradient_steps=9)
    nets = networks(config)
    ours, theirs = ([copy.deepcopy(net) for net in nets] for _ in range(2))
    rows = batch_of(18, 0)
    updated, eager = ChunkedUpdate(*ours, config, for_loop)(rows, 1e-3), EagerUpdate(*theirs, config, for_loop)
    expected = torch.stack([eager(batch, 1e-3).loss for batch in split(rows, 2)])
    torch.testing.assert_close(updated.loss, expected)
    assert updated.target.shape == updated.td_error.shape == (18,)
    assert_same(ours[0], theirs[0])


def test_equal_trainers_share_what_was_compiled():
    config = DQNConfig(hidden=(6,))
    first, second = (CompiledUpdate(*networks(config), config, for_loop) for _ in range(2))
    first(batch_of(4, 0), 1e-3)
    second(batch_of(4, 1), 1e-3)
    assert first.build_s > 0 == second.build_s and second.recompiles == 0
    second(batch_of(5, 1), 1e-3)  # another batch size
    assert second.recompiles == 1 and second.build_s > 0
    key = first.network, first.settings, 1, batch_of(4, 0)
    assert compiled_for(*key) is first.functions[1][0]
    assert compiled_for(key[0], first.settings._replace(huber=True), *key[2:]) is not first.functions[1][0]


def test_views_of_packed_rows():
    ring = RingTorch(SPEC, 32)
    ring.add(random_transitions(32, SPEC, 0))
    batch = ring.sample(torch.arange(8).numpy())
    assert not batch.obs.is_contiguous()
    config = DQNConfig(hidden=(6,))
    nets = networks(config)
    ours, theirs = ([copy.deepcopy(net) for net in nets] for _ in range(2))
    update, eager = CompiledUpdate(*ours, config, for_loop), EagerUpdate(*theirs, config, foreach)
    for _ in range(3):
        torch.testing.assert_close(update(batch, 1e-3).loss, eager(batch, 1e-3).loss)
    assert_same(ours[0], theirs[0])


@pytest.mark.slow
@NEEDS_COMPILER
@pytest.mark.parametrize("autocast", [None, torch.bfloat16])
def test_the_compiled_update_of_every_network(autocast):
    precision = Precision("x", "cpu", autocast)
    for network in ("dueling", "conv"):
        config = DQNConfig(network=network, hidden=(17, 5), huber=True)
        nets = networks(config)
        ours, theirs = ([copy.deepcopy(net) for net in nets] for _ in range(2))
        update, eager = (make(*n, config, for_loop, precision) for make, n in
                         ((CompiledUpdate, ours), (EagerUpdate, theirs)))  # fmt: skip
        for k in range(3):
            batch = batch_of(9, k, masked=True, weighted=True)
            tolerance = {"rtol": 2e-2, "atol": 2e-2} if autocast else {"rtol": 1e-5, "atol": 1e-6}
            torch.testing.assert_close(update(batch, 1e-4).td_error, eager(batch, 1e-4).td_error, **tolerance)


def reason(variant, config=None, device=CPU):
    return requires(variant, None, config, device, None)


def test_what_variants_need():
    config = DQNConfig(hidden=(6,))
    several, prioritised = config.replace(gradient_steps=4), config.replace(prioritized_replay_alpha=0.6)
    cuda = torch.device("cuda")
    assert reason("eager") is None and reason("native", config.replace(network="conv")).startswith("native code has no")
    assert "needs CUDA" in reason("cuda_graph") and reason("cuda_graph", config, cuda) is None
    stale = prioritised.replace(gradient_steps=4)
    for variant, device in (("chunked", CPU), ("cuda_graph", cuda)):
        if why_not(device.type) is None or variant == "cuda_graph":
            assert "the 4 updates of a round would be sampled at once" in reason(variant, stale, device)
            assert reason(variant, several, device) is None
    if why_not("cpu") is None:
        assert reason("compiled", stale) is None
        assert "gradient_steps=1" in reason("chunked", config) and reason("chunked") is None
    assert reason("cuda_graph", prioritised, cuda) is None
    for update in ("compiled", "chunked", "cuda_graph", "native"):
        assert "an Adam of its own" in SPEEDUPS["optimizer"].requires("fused", Choices(update=update), None, CPU, None)


def test_without_a_compiler_there_is_one_notice(monkeypatch, capfd):
    monkeypatch.setattr(
        "rlbench.speedups.update.why_not", lambda kind: "torch.compile needs a C++ compiler: install one"
    )
    choices = Choices.plain()._of({**Choices.plain().to_dict(), "update": "compiled"}, {})
    for _ in range(3):
        assert choices.usable(DQNConfig(), "cpu").update == "eager"
    told = capfd.readouterr().err
    assert told.count("update='eager' instead of 'compiled': torch.compile needs a C++ compiler: install one") == 1
    from rlbench.updates import graph

    monkeypatch.setattr(graph, "why_not", lambda kind: "no Triton")
    config = DQNConfig(hidden=(6,), gradient_steps=2)
    update = GraphUpdate(*networks(config), config, for_loop)
    assert callable(update.function(2, batch_of(8, 0))) and callable(update.function(2, batch_of(8, 0)))
    assert capfd.readouterr().err.count("captures what PyTorch runs eagerly: no Triton") == 1


def test_several_updates_are_those_one_after_another():
    config = DQNConfig(hidden=(4,))
    online, target = networks(config)
    flat = FlatNetwork(online)
    parameters, slow, rows = flat.adopt(online), flat.adopt(target), batch_of(6, 0)
    rate, settings = torch.tensor(1e-2, dtype=torch.float64), Settings.of(config)
    many = td_updates(flat, parameters, slow, flat.start(parameters), torch.tensor(1), rows, rate, settings, 3)
    one, moments = parameters, flat.start(parameters)
    for k, batch in enumerate(split(rows, 2)):
        one, moments, _ = td_update(flat, one, slow, moments, torch.tensor(k + 1), batch, rate, settings)
    torch.testing.assert_close(many[0], one)
    assert many[2].loss.shape == (3,)


def test_native_says_what_it_does_not_take():
    config = DQNConfig(hidden=(4,))
    with pytest.raises(TypeError, match="float32, not in bfloat16"):
        Native(*networks(config), config, for_loop, Precision("bfloat16", autocast=torch.bfloat16))
    with pytest.raises(TypeError, match="does not scale losses"):
        CompiledUpdate(*networks(config), config, for_loop, Precision("float16_scaled", scaled=True))
