import pytest
import torch

from rlbench.profiling import twins as twins_module
from rlbench.profiling.records import Product
from rlbench.profiling.twins import Twin, acting_batch, hidden_of, in_turns, layers_of, make_twins, narrower

CPU = torch.device("cpu")


def product(inputs, outputs, calls=10, batch=8, learning=True, phase="forward", convolution=False):
    return Product(phase, batch, inputs, outputs, calls, learning, convolution)


def acting(inputs, outputs, batch=1, calls=40):
    return product(inputs, outputs, calls, batch, learning=False, phase="action")


DQN = [
    *(acting(*shape) for shape in ((4, 12), (12, 10), (10, 2))),
    *(product(*shape, learning=False) for shape in ((4, 12), (12, 10), (10, 2))),  # the target network
    *(product(*shape) for shape in ((4, 12), (12, 10), (10, 2))),
]
# Actor and critic of the same widths: one row for layers of one shape.
TWO = [product(4, 64, 20), product(64, 64, 20), product(64, 2), product(64, 1)]


def test_the_layers_that_learn_as_often_as_they_occur_in_a_pass():
    assert layers_of(DQN) == ((4, 12), (12, 10), (10, 2))
    assert layers_of(TWO) == ((4, 64), (4, 64), (64, 64), (64, 64), (64, 2), (64, 1))
    assert layers_of([acting(4, 2), product(4, 2, learning=False), product(9, 8, convolution=True)]) == ()
    # An action chosen with gradients on is no learning.
    assert layers_of([product(4, 3, phase="action"), product(4, 5)]) == ((4, 5),)


@pytest.mark.parametrize(
    ("shapes", "hidden"),
    [
        (((4, 12), (12, 10), (10, 2)), (12, 10)),
        (((4, 64), (4, 64), (64, 64), (64, 64), (64, 2), (64, 1)), (64, 64)),  # actor and critic
        (((4, 64), (64, 64), (64, 2), (64, 1)), (64, 64)),  # two heads on one trunk
        (((64, 64), (64, 64), (64, 3)), (64, 64)),  # an observation as wide as the layers
        (((4, 32), (32, 2), (4, 256), (256, 1)), (256,)),
        (((3, 64), (64, 8), (8, 64), (64, 3)), (64, 8, 64)),  # out is as wide as in
        (((4, 2),), ()),
        (((5, 5),), ()),
    ],
)
def test_hidden_widths_of_one_network(shapes, hidden):
    assert hidden_of(shapes) == hidden


def test_narrower_layers_keep_what_is_seen_and_chosen_and_are_never_empty():
    assert narrower(((4, 12), (12, 10), (10, 2)), 4) == ((4, 3), (3, 2), (2, 2))
    assert narrower(((4, 3), (3, 2)), 10) == ((4, 1), (1, 2))
    assert narrower(((64, 64), (64, 64), (64, 3)), 2) == ((64, 32), (32, 32), (32, 3))
    assert narrower(((4, 2),), 10) == ((4, 2),)


def test_rows_of_an_action_are_those_of_most_calls():
    assert acting_batch(DQN) == 1
    assert acting_batch([acting(4, 8, batch=16, calls=3), acting(4, 8, batch=1, calls=2), product(4, 8)]) == 16
    assert acting_batch([product(4, 8)]) == 1


def test_all_layers_of_a_twin_learn():
    torch.manual_seed(0)
    shapes = layers_of(TWO)
    twin = Twin(shapes, CPU)
    twin([torch.randn(8, inputs) for inputs, _ in shapes]).backward()
    assert [tuple(layer.weight.shape[::-1]) for layer in twin.layers] == list(shapes)
    assert all(parameter.grad is not None for parameter in twin.parameters())


def test_ratios_of_a_network_and_its_twins():
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    with torch.no_grad():  # wherever a profile ends
        found = make_twins(DQN, 8, "cpu", seconds=0.05)
    assert found.hidden == (12, 10) and found.batch == 8
    assert set(found.narrower) == set(found.acting) == {1, 2, 4, 10}
    assert found.narrower[1] == found.acting[1] == 1.0
    assert set(found.batches) == {1, 8, 32, 64, 128, 256, 512}
    assert min(*found.narrower.values(), *found.acting.values(), *found.batches.values()) > 0
    assert found.after_wait is None
    assert torch.equal(torch.get_rng_state(), state) and torch.get_num_threads() == threads


def test_a_default_type_and_an_inference_mode_around_do_not_matter():
    torch.set_default_dtype(torch.float64)
    try:
        with torch.inference_mode():
            assert make_twins([product(3, 2)], 4, "cpu", seconds=0.01).hidden == ()
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("products", "batch"), [([], 8), (DQN, 0), ([acting(4, 2)], 8), ([product(4, 2, convolution=True)], 8)]
)
def test_without_dense_layers_that_learn_there_are_none(products, batch):
    assert make_twins(products, batch, "cpu") is None


class Planted:
    """A step on the planted clock."""

    def __init__(self, clock, name, seconds):
        self.clock, self.name, self.seconds, self.kept = clock, name, seconds, 0

    def run(self, keep):
        self.clock.order.append(self.name)
        self.clock.now += self.seconds
        self.kept += keep

    def times(self):
        return self.kept


class Clock:
    def __init__(self):
        self.now, self.order = 0.0, []

    def perf_counter(self):
        return self.now


def test_blocks_take_turns_and_long_ones_have_one(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(twins_module, "time", clock)
    steps = {("narrower", 1): Planted(clock, "a", 0.01), ("batch", 512): Planted(clock, "b", 1.0)}
    steps["batch", 1] = Planted(clock, "c", 0.02)
    kept = in_turns(steps, 5.0)
    assert clock.order[:12] == ["a"] * 4 + ["b"] * 4 + ["c"] * 4
    assert (
        kept[("batch", 512)] == 3
    )  # four seconds are more than a quarter of the time; the first of a block is not kept
    assert kept[("narrower", 1)] == kept[("batch", 1)] > 6
    assert clock.now >= 5.0


def test_where_all_take_long_it_ends(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(twins_module, "time", clock)
    assert in_turns({("narrower", 1): Planted(clock, "a", 2.0)}, 1.0) == {("narrower", 1): 3}
