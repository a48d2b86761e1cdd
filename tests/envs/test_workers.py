"""Environments in processes: importable factories, faults that are told at once, nothing left behind (cases 35 and 39)."""

import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from executor_envs import Counting, Troubled, named_poles, only_in_the_parent

from rlbench.envs import executors
from rlbench.envs.importable import why_not_importable
from rlbench.envs.make import make_collector
from rlbench.envs.spaces import EnvError

CHILDREN = Path(__file__).parent / "children"
ROOT = Path(__file__).parents[2]
SOON_S = 10.0


@pytest.fixture(autouse=True)
def no_child_is_left():
    yield
    assert multiprocessing.active_children() == []


def troubled(count=2):
    return make_collector(Troubled, count, 0, environments="async")


def in_the_notebook():
    return Counting()


in_the_notebook.__module__ = "__main__"


def a_closure():
    length = 3

    def make():
        return Counting() if length else None

    return make


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        (lambda: Counting(), "a lambda"),
        (a_closure(), "make, defined inside a function"),
        (in_the_notebook, "in_the_notebook, defined in the script or notebook itself"),
        (functools.partial(named_poles, name=threading.Lock()), "cannot be pickled"),
    ],
    ids=["lambda", "closure", "cell", "lock"],
)
def test_what_cannot_be_imported_is_refused_at_once(factory, words):
    reason = why_not_importable(factory)
    assert words in reason and "write the factory as a function of a module" in reason
    if words != "cannot be pickled":
        with pytest.raises(EnvError, match=rf"cannot be stepped in processes: .*{words}"):
            make_collector(factory, 2, 0, environments="async")


@pytest.mark.parametrize("factory", [Counting, named_poles, functools.partial(named_poles, name="CartPole-v1")])
def test_what_can_be_imported_is_taken(factory):
    assert why_not_importable(factory) is None


def test_a_failing_environment_is_told_with_its_traceback_while_others_are_busy():
    collector, start = troubled(3), time.monotonic()
    processes = collector.envs.processes
    with pytest.raises(
        EnvError, match=r"(?s)environment 2 failed in its process:.*in step.*TwoPartError: the book is crossed"
    ):
        collector.step(np.array([2, 2, 1]))
    assert time.monotonic() - start < SOON_S
    assert not any(process.is_alive() for process in processes)


def test_an_environment_that_cannot_be_made_there_is_told_with_its_traceback():
    with pytest.raises(EnvError, match=r"(?s)environment \d failed in its process:.*LookupError: no such market"):
        make_collector(only_in_the_parent, 2, 0, environments="async")


def test_a_killed_process_is_told_while_others_are_busy():
    collector, start = troubled(), time.monotonic()
    threading.Timer(0.5, os.kill, (collector.envs.processes[1].pid, signal.SIGKILL)).start()
    with pytest.raises(EnvError, match=r"the process of environment 1 was killed by SIGKILL"):
        collector.step(np.array([2, 2]))
    assert time.monotonic() - start < SOON_S


def test_an_interrupt_ends_the_processes():
    collector = troubled()
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        collector.step(np.array([2, 0]))


def test_children_leave_interrupts_to_the_parent_and_use_one_thread():
    before = os.environ.get("OMP_NUM_THREADS")
    collector = troubled()
    try:
        assert collector.obs.tolist() == [[1.0], [1.0]]
        assert os.environ.get("OMP_NUM_THREADS") == before
        for process in collector.envs.processes:
            os.kill(process.pid, signal.SIGINT)
        collector.step(np.array([0, 0]))
    finally:
        collector.close()
    collector.close()  # a second time does nothing


SCRIPT = """
import sys, time
import numpy as np
import executor_envs
from rlbench.envs.make import make_collector

print("run", flush=True)
collector = make_collector(executor_envs.Counting, 2, 0, environments="async")
collector.step(np.zeros(2, np.int64))
print(*(process.pid for process in collector.envs.processes), flush=True)
time.sleep(float(sys.argv[1]))
"""


def start_script(tmp_path, seconds):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(CHILDREN), str(ROOT)])}
    return subprocess.Popen([sys.executable, file, str(seconds)], env=env, stdout=subprocess.PIPE, text=True)


def is_running(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_a_script_without_a_guard_works_and_leaves_nothing(tmp_path):
    script = start_script(tmp_path, 0)
    out, _ = script.communicate(timeout=60)
    first, pids = out.splitlines()
    assert (script.returncode, first) == (0, "run")
    assert not any(is_running(pid) for pid in pids.split())


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_children_do_not_outlive_a_killed_parent(tmp_path):
    script = start_script(tmp_path, 60)
    assert script.stdout.readline() == "run\n"
    pids = script.stdout.readline().split()
    assert len(pids) == 2 and all(map(is_running, pids))
    script.kill()
    script.communicate()
    end = time.monotonic() + SOON_S
    while any(map(is_running, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(is_running, pids))


def test_an_id_registered_only_here_reaches_the_children():
    gymnasium.register("tests/Counting-v0", entry_point="executor_envs:Counting")
    try:
        collector = make_collector("tests/Counting-v0", 2, 0, environments="async")
        assert collector.obs.tolist() == [[10.0], [10.0]]
        collector.close()
    finally:
        del gymnasium.registry["tests/Counting-v0"]


def test_more_processes_than_cores_are_told_of_once(monkeypatch, capsys):
    monkeypatch.setattr(executors, "describe", lambda **_: SimpleNamespace(usable_cores=2.0))
    executors._tell_of_cores.cache_clear()
    for count in (1, 2, 3, 3):
        executors._tell_of_cores(count)
    assert capsys.readouterr().err == "rlbench: 3 environments in processes on 2 core(s): so many run at once.\n"
