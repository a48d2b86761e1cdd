"""Building: once, under a name that says from what; and what is said where it cannot be done."""

import pytest
import torch

from rlbench import Choices, DQNConfig
from rlbench.native import build
from rlbench.speedups import SPEEDUPS, ChoiceError
from rlbench.trainers.dqn import DQN

SMALL = DQNConfig(total_timesteps=60, learning_starts=20, batch_size=8, hidden=(8,), eval_episodes=0)


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """An empty cache folder, nothing loaded and nothing to account for yet."""
    build.take_build_seconds()
    monkeypatch.setenv(build.CACHE_VARIABLE, str(tmp_path))
    build.load.cache_clear()
    yield tmp_path
    build.load.cache_clear()


def test_a_library_is_built_once_and_kept(fresh):
    build.load("dqn_update")
    assert build.take_build_seconds() > 0 and build.take_build_seconds() == 0
    assert len(list(fresh.glob("dqn_update-*.so"))) == 1 and len(list(fresh.iterdir())) == 1
    build.load.cache_clear()
    build.load("dqn_update")
    assert build.take_build_seconds() == 0


def test_another_compiler_or_source_is_another_library(fresh, monkeypatch):
    source = fresh / "some.c"
    source.write_text("int one(void) { return 1; }")
    names = {build._digest(source, "cc", build.FLAGS)}
    source.write_text("int one(void) { return 2; }")
    names.add(build._digest(source, "cc", build.FLAGS))
    monkeypatch.setattr(build, "_processor", lambda: "another")
    names.add(build._digest(source, "cc", build.FLAGS))
    names.add(build._digest(source, "cc", build.FLAGS + build.EXACT))
    (fresh / "included.h").write_text("int two;")
    names.add(build._digest(source, "cc", build.FLAGS))
    assert len(names) == 5


def no_compiler(monkeypatch):
    monkeypatch.setattr(build.shutil, "which", lambda name: None)


def test_without_a_compiler_fast_steps_back_with_one_notice(fresh, monkeypatch, capsys):
    from rlbench.speedups import choices

    no_compiler(monkeypatch)
    choices.say_once.cache_clear()
    trainers = [DQN(SMALL, Choices.fast()) for _ in range(2)]
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "environments='one_by_one' instead of 'native', loop='python' instead of 'native', update='eager' instead of 'native': "
        "there is no C compiler (looked for $CC, cc, gcc, clang): install gcc or clang."
    ]
    history = trainers[0].train(progress=False)
    assert history.choices["update"] == "eager" and history.choices["optimizer"] == "fused" and history.updates == 4


def test_without_a_compiler_asking_for_it_is_refused(fresh, monkeypatch):
    no_compiler(monkeypatch)
    with pytest.raises(ChoiceError, match="update='native' cannot be used: there is no C compiler"):
        DQN(SMALL, Choices(update="native"))


def test_a_build_that_fails_says_why(fresh, monkeypatch):
    monkeypatch.setattr(build, "FLAGS", ("-nonsense",))
    with pytest.raises(build.BuildError, match=r"could not build dqn_update\.c"):
        build.load("dqn_update")
    assert not list(fresh.iterdir())  # nothing half-built is left


def test_a_cache_that_cannot_be_written_says_what_to_set(fresh, monkeypatch):
    file = fresh / "file"
    file.write_text("")
    monkeypatch.setenv(build.CACHE_VARIABLE, str(file / "folder"))
    with pytest.raises(build.BuildError, match="set RLBENCH_CACHE to a folder that can be written"):
        build.load("dqn_update")


def test_it_is_refused_on_another_device():
    reason = SPEEDUPS["update"].requires("native", None, None, torch.device("cuda"), None)
    assert reason == "native code runs on the CPU, and this runs on cuda; accepted here: eager, compiled"


def test_compile_seconds_are_counted_for_the_run_that_paid_them(fresh):
    first, second = (DQN(SMALL, Choices.fast()).train(progress=False) for _ in range(2))
    assert first.compile_s > 0 and second.compile_s == 0
    assert first.total_s >= first.compile_s + first.train_s


def test_an_optimizer_beside_it_is_refused():
    with pytest.raises(ChoiceError, match="optimizer='foreach' cannot be used: update='native' has an Adam of its own"):
        DQN(SMALL, Choices(update="native", optimizer="foreach"))
    assert "optimizer" not in Choices.fast().in_use()


def test_structs_of_another_size_than_the_code_was_built_for_are_refused():
    import ctypes

    class Short(ctypes.Structure):
        _fields_ = (("layers", ctypes.c_int64),)

    with pytest.raises(build.BuildError, match=r"struct job has \d+ bytes in C and 8 in Short"):
        build.check_layout(build.load("dqn_update"), "job", Short)
