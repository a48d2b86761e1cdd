import pytest
import torch

from rlbench.probe import Probe
from rlbench.profiling.thread_probe import BLOCKS_OF_ONE_KIND, ThreadProbing, physical_cores


class Run:
    """A run on a clock of its own: seconds of a step and an update depend on the number of threads."""

    def __init__(self, monkeypatch, threads, step, update=None):
        self.threads, self.now, self.history = threads, 0.0, []
        self.step_s, self.update_s = step, update or {}
        monkeypatch.setattr(torch, "get_num_threads", lambda: self.threads)
        monkeypatch.setattr(torch, "set_num_threads", self.set)

    def set(self, number):
        self.history.append(number)
        self.threads = number

    def clock(self):
        return self.now

    def step(self, probing):
        self.now += self.step_s[self.threads]
        probing.step()

    def update(self, probing):
        self.now += self.update_s[self.threads]
        probing.update()


def test_seconds_a_step_by_number_and_the_number_is_put_back(monkeypatch):
    run = Run(monkeypatch, 4, {4: 0.03, 1: 0.01, 2: 0.02})
    probing = ThreadProbing((1, 2), clock=run.clock)
    probing.start()
    while not probing.done:
        run.step(probing)
        blocks = [len(blocks) for blocks in probing.blocks.values()]
        assert max(blocks) - min(blocks) <= 1  # in turns
    probing.stop()
    assert run.threads == 4
    found = probing.probe()
    assert found.now == 4 and found.seconds == {1: pytest.approx(0.01), 2: pytest.approx(0.02), 4: pytest.approx(0.03)}
    assert min(len(blocks) for blocks in probing.blocks.values()) == BLOCKS_OF_ONE_KIND
    run.step(probing)  # after the end nothing is counted or set
    assert probing.probe() == found


def test_a_block_has_ten_steps_and_its_time_and_the_first_interval_is_not_in_it(monkeypatch):
    run = Run(monkeypatch, 2, {2: 0.1, 1: 0.1})
    probing = ThreadProbing((1,), clock=run.clock)
    probing.start()
    first = run.threads
    run.now += 1_000.0  # the pool is built
    run.step(probing)
    for _ in range(9):
        run.step(probing)
    assert probing.blocks[first] == []
    run.step(probing)
    [block] = probing.blocks[first]
    assert block.count["step"] == 10 and block.seconds["step"] == pytest.approx(1.0)
    run.step_s = {1: 0.001, 2: 0.001}
    run.step(probing)
    for _ in range(149):
        run.step(probing)
    assert sum(map(len, probing.blocks.values())) == 1
    run.step(probing)
    run.step(probing)
    assert sum(map(len, probing.blocks.values())) == 2


def test_updates_are_weighed_by_how_many_there_are_a_step(monkeypatch):
    # A rollout of 40 steps, then 20 updates: some blocks hold one, some the other.
    run = Run(monkeypatch, 2, {2: 0.01, 1: 0.02}, {2: 0.4, 1: 0.2})
    probing = ThreadProbing((1,), clock=run.clock)
    probing.start()
    for _ in range(30):
        for _ in range(40):
            run.step(probing)
        for _ in range(20):
            run.update(probing)
    probing.stop()
    assert probing.done
    each = probing.seen["update"] / probing.seen["step"]
    assert each == pytest.approx(0.5, rel=0.2)
    assert probing.probe().seconds == {1: pytest.approx(0.02 + each * 0.2), 2: pytest.approx(0.01 + each * 0.4)}


def test_a_run_without_an_env_counts_updates(monkeypatch):
    run = Run(monkeypatch, 2, {}, {2: 0.02, 1: 0.03})
    probing = ThreadProbing((1,), clock=run.clock)
    probing.start()
    while not probing.done:
        run.update(probing)
    probing.stop()
    assert probing.probe().seconds == {1: pytest.approx(0.03), 2: pytest.approx(0.02)}


def test_nothing_to_compare_is_none(monkeypatch):
    run = Run(monkeypatch, 1, {1: 0.1, 3: 0.1})
    alone = ThreadProbing((1, 1), clock=run.clock)
    alone.start()
    assert alone.done
    run.step(alone)
    alone.stop()
    assert alone.probe() is None and run.history == []
    early = ThreadProbing((3,), clock=run.clock)
    assert early.probe() is None
    early.start()
    for _ in range(5):
        run.step(early)
    early.stop()
    assert early.probe() is None and run.threads == 1


def test_a_number_that_the_run_sets_itself_is_left_alone(monkeypatch):
    run = Run(monkeypatch, 2, {2: 0.1, 1: 0.1, 7: 0.1})
    probing = ThreadProbing((1,), clock=run.clock)
    probing.start()
    for _ in range(40):
        run.step(probing)
    run.threads = 7
    run.step(probing)
    assert probing.done
    probing.stop()
    assert run.threads == 7 and probing.probe() is not None


def test_it_goes_on_when_started_again(monkeypatch):
    run = Run(monkeypatch, 2, {2: 0.1, 1: 0.2})
    probing = ThreadProbing((1,), clock=run.clock)
    for _ in range(4):
        probing.start()
        for _ in range(24):
            run.step(probing)
        probing.stop()
        assert run.threads == 2
        run.now += 500.0
    assert probing.probe().seconds == {1: pytest.approx(0.2), 2: pytest.approx(0.1)}


def test_bad_candidates_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        ThreadProbing((0,))


def machine(tmp_path, siblings, quota=None):
    for number, text in siblings.items():
        folder = tmp_path / f"sys/devices/system/cpu/cpu{number}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(text + "\n")
    if quota:
        (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
        (tmp_path / "sys/fs/cgroup/cpu.max").write_text(quota)
    return Probe(root=tmp_path, cpu_count=lambda: 4)


PAIRS = {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}


@pytest.mark.parametrize(
    ("siblings", "quota", "cpus", "cores"),
    [
        (PAIRS, None, range(4), 2),
        (PAIRS, None, (0, 2), 1),  # both threads of one core
        (PAIRS, None, (0, 3), 2),
        (PAIRS, "150000 100000", range(4), 1),  # a container with one and a half
        (PAIRS, "50000 100000", range(4), 1),
        (PAIRS, "max 100000", range(4), 2),
        ({}, None, range(3), 3),  # nothing known of cores
    ],
)
def test_physical_cores(tmp_path, siblings, quota, cpus, cores):
    assert physical_cores(machine(tmp_path, siblings, quota), cpus) == cores


def test_physical_cores_of_this_process():
    assert physical_cores() >= 1
