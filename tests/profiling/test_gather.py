import pytest
from planted import HEALTHY, phases

from rlbench.profiling.gather import with_waits
from rlbench.profiling.minibatch import Gather, minibatch_of, passes_of
from rlbench.profiling.records import Counted, Product, Trace


def test_what_the_host_waited_for_the_device_is_sync():
    trace = Trace(50, 0.6, 1.2, (), (), 500, 1e-5, 0.1, 0.03, {"action": 0.025, "optimizer": 99.0})
    found = {phase.name: phase for phase in with_waits(phases(HEALTHY), trace, steps=1000)}
    assert found["action"].seconds == pytest.approx(1.0 - 0.025 / 50 * 1000)
    assert found["optimizer"].seconds == pytest.approx(0.05), "never more than there is"
    assert found["sync"].seconds == pytest.approx(0.5 + 0.95)
    assert sum(phase.seconds for phase in found.values()) == pytest.approx(10.0)
    assert sum(phase.share for phase in found.values()) == pytest.approx(1.0)
    assert list(found)[-1] == "other"


def test_without_a_device_nothing_moves():
    own = phases(HEALTHY)
    assert with_waits(own, Trace(50, 0.6, 1.2, (), ()), 1000) == own and with_waits(own, None, 1000) == own


def counted(*products, updates=10):
    return Counted(10, updates, 1.0, None, (), (), products, ())


def test_the_minibatch_is_what_the_first_layer_sees():
    at_once = counted(Product("forward", 64, 4, 8, 10, True), Product("forward", 64, 8, 8, 20, True))
    assert (passes_of(at_once), minibatch_of(at_once)) == (1, 64)
    one_by_one = counted(Product("forward", 1, 4, 8, 640, True))
    assert (passes_of(one_by_one), minibatch_of(one_by_one)) == (64, 64)
    two_critics = counted(Product("forward", 64, 4, 8, 20, True))
    assert minibatch_of(two_critics) == 64
    assert (passes_of(None), minibatch_of(counted())) == (1, 0)


@pytest.mark.parametrize(("batch", "width"), [(1, 1), (32, 4), (7, 300)])
def test_reading_from_arrays(batch, width):
    rows = Gather(batch, width)()
    assert [tuple(row.shape) for row in rows] == [(batch, width), (batch, width), (batch,), (batch,), (batch,)]
