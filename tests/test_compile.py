"""Compilations are counted and their seconds told; what cannot compile says why."""

import math
import sys
import warnings

import pytest
import torch

from rlbench import compile as module
from rlbench.compile import Compiled, CompileError, pays_back_after, why_not


@pytest.fixture
def no_memory():
    """`why_not` looks again."""
    why_not.cache_clear()
    yield
    why_not.cache_clear()


def scaled(x, factor):
    return x * factor


def test_compilations_are_counted():
    function = Compiled(scaled, backend="eager")
    assert (function.compilations, function.recompiles, function.compile_s) == (0, 0, 0.0)
    for k in range(5):
        torch.testing.assert_close(function(torch.ones(3), torch.tensor(k * 0.5)), torch.full((3,), k * 0.5))
    assert (function.compilations, function.recompiles) == (1, 0)
    assert 0.0 < function.compile_s < function.spent_s
    before = function.compile_s
    function(torch.ones(4), torch.tensor(1.0))  # another shape
    assert (function.compilations, function.recompiles) == (2, 1) and function.compile_s > before
    function(torch.ones(3), torch.tensor(1.0))  # both are kept
    assert function.recompiles == 1


def test_functions_do_not_use_up_each_others_entries():
    """torch.compile gives up after eight compilations of one code object."""
    for rows in range(1, 12):
        function = Compiled(scaled, backend="eager")
        assert function(torch.ones(rows), torch.tensor(2.0)).sum() == 2 * rows and function.compilations == 1


def test_a_number_would_compile_anew_and_a_tensor_does_not():
    function = Compiled(scaled, backend="eager")
    for k in range(4):
        function(torch.ones(3), 0.5 + k)
    assert function.recompiles > 0


def test_what_cannot_be_traced_says_so():
    def branches(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(CompileError, match=r"torch.compile failed \(.*: .*\): use what runs eagerly"):
        Compiled(branches, backend="eager")(torch.ones(2))


def test_a_backend_that_fails_says_so(monkeypatch):
    def broken(graph, inputs):
        raise OSError("no space left")

    monkeypatch.setattr(torch._dynamo, "lookup_backend", lambda name: broken)
    with pytest.raises(CompileError, match="OSError: no space left"):
        Compiled(scaled)(torch.ones(2), torch.tensor(1.0))


def test_errors_of_the_function_itself_are_not_hidden():
    function = Compiled(scaled, backend="eager")
    function(torch.ones(3), torch.ones(3))
    with pytest.raises(CompileError, match=r"TorchRuntimeError: .*torch.Size|size") as caught:
        function(torch.ones(3), torch.ones(4))
    assert "[4]" in str(caught.value.__cause__)


@pytest.mark.skipif(sys.platform == "win32", reason="other compilers there")
def test_no_compiler_and_a_broken_one(no_memory, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert "C++ compiler (looked for $CXX, no-such-compiler): install one" in why_not("cpu")
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'Python.h: no such file' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    assert "no-such-compiler" in why_not("cpu")  # looked at once a process
    why_not.cache_clear()
    assert "(Python.h: no such file): install python3-dev" in why_not("cpu")


def test_triton_that_is_missing(no_memory, monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    assert why_not("cuda") == "torch.compile on CUDA needs Triton: pip install triton"


def test_the_cache_folder_is_the_users_unless_one_was_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("RLBENCH_CACHE", str(tmp_path))
    monkeypatch.setenv(module.CACHE_VARIABLE, "elsewhere")
    module.use_cache_folder()
    assert module.os.environ[module.CACHE_VARIABLE] == "elsewhere"
    monkeypatch.delenv(module.CACHE_VARIABLE)
    module.use_cache_folder()
    assert module.os.environ[module.CACHE_VARIABLE] == str(tmp_path / "inductor") and (tmp_path / "inductor").is_dir()


def test_a_cache_folder_that_cannot_be_made_leaves_torchs_own(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RLBENCH_CACHE", str(tmp_path / "file"))
    monkeypatch.delenv(module.CACHE_VARIABLE, raising=False)
    module.use_cache_folder()
    assert module.CACHE_VARIABLE not in module.os.environ


@pytest.mark.parametrize(
    ("compile_s", "saved_s", "steps"),
    [(10.0, 0.5, 20), (10.0, 3.0, 4), (0.0, 1.0, 0), (10.0, 0.0, math.inf), (10.0, -1.0, math.inf)],
)
def test_when_compiling_pays_back(compile_s, saved_s, steps):
    assert pays_back_after(compile_s, saved_s) == steps


@pytest.mark.slow
@pytest.mark.skipif(why_not("cpu") is not None, reason=str(why_not("cpu")))
def test_a_second_process_finds_what_the_first_compiled(tmp_path):
    """A new folder is filled by one process and read by the next."""
    import os
    import subprocess

    script = """
import torch
from rlbench.compile import Compiled
def f(x): return (x.sin() * 2).sum()
f = Compiled(f)
f(torch.ones(5))
counters = torch._dynamo.utils.counters["inductor"]
print(counters["fxgraph_cache_hit"], counters["fxgraph_cache_miss"], f.compilations)
"""
    env = {**os.environ, "RLBENCH_CACHE": str(tmp_path)}
    env.pop(module.CACHE_VARIABLE, None)
    said = [
        subprocess.run(
            [sys.executable, "-W", "error::UserWarning", "-c", script], env=env, capture_output=True, text=True
        )
        for _ in range(2)
    ]
    assert all(run.returncode == 0 for run in said), said[-1].stderr
    (hits, misses, _), (_, missed_again, compilations) = (map(int, run.stdout.split()) for run in said)
    assert (hits, misses) == (0, 1) and missed_again == 0 and compilations == 1


def test_nothing_is_compiled_or_changed_by_asking():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert why_not("cpu") is None or "C++" in why_not("cpu")
