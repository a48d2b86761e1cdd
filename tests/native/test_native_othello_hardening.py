"""Othello in C built otherwise: under sanitisers, and for processors whose vectors are shorter."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not (shutil.which("gcc") and sys.platform == "linux"), reason="needs gcc, and its sanitisers"
)

BUILD_SO = """
import sys
import rlbench.native.build as build
build.FLAGS = tuple(sys.argv[1:])
"""
# Plays games of every size and opponent, in numbers around a vector's length; `seen` is a digest of all that it was given.
PLAY = """
import hashlib
import torch
from rlbench.envs.othello import Othello, boards_of
from rlbench.native.othello import MaskGames, NativeOthello, alpha_beta_ids, random_play
seen = hashlib.sha256()
def note(*tensors):
    for tensor in tensors:
        note(*tensor) if isinstance(tensor, tuple) else seen.update(tensor.numpy().tobytes())
opponents = [None, "random", "greedy", "alpha_beta_2", "alpha_beta_3"]
for size in (4, 6, 8):
    for number, num_envs in enumerate((1, 2, 3, 7, 8, 9, 15, 17, 63, 130)):
        reward, openings = ("win", "discs")[number % 2], (0, 3, 9, 63)[number % 4]
        game = Othello(size, reward, openings, opponents[number % len(opponents)])
        games = NativeOthello(game, num_envs, number)
        position = games.reset()
        for t in range(25):
            obs, legal = position[:2]
            note(*position)
            if t % 8 == 7:
                boards = boards_of(obs, size)
                note(alpha_beta_ids(boards.mine, boards.theirs, *legal, size, 1 + number % 3))
            position = games.step(legal.ids[legal.offsets[:-1] + 3 * t % legal.counts])
            bad = torch.full((num_envs,), 2**62 + t)
            try:
                games.step(bad)
            except ValueError as error:
                assert "is not legal" in str(error)
        note(*random_play(size, num_envs, 70, number)[4:6], *random_play(size, num_envs, 70, number, True)[4:])
        masks = MaskGames(num_envs, size)
        legal = masks.reset()
        for t in range(70):
            bits = (legal[:, None] >> torch.arange(64)) & 1
            legal, *rest = masks.step(torch.where(legal == 0, 64, bits.argmax(1)))
            note(legal, *rest)
"""
PRINT = "print(seen.hexdigest())"
SHARED = ("-std=gnu11", "-shared", "-fPIC")


def digest(folder, *flags, **variables):
    env = {**os.environ, "RLBENCH_CACHE": str(folder), "OMP_NUM_THREADS": "1", **variables}
    command = [sys.executable, "-c", BUILD_SO + PLAY + PRINT, *flags]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert not done.returncode, done.stderr[-3000:]
    return done.stdout.strip()


@pytest.fixture(scope="module")
def expected():
    """As it is built for use."""
    names = {}
    exec(PLAY, names)
    return names["seen"].hexdigest()


WIDTHS = {"plain": ("-O2",), "avx2": ("-O3", "-mavx2", "-mbmi2"), "avx512": ("-O3", "-mavx512f")}


def runs_here(width):
    if width == "plain":
        return True
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split() if platform.machine() == "x86_64" else []
    return {"avx2": "avx2" in flags and "bmi2" in flags, "avx512": "avx512f" in flags}[width]


@pytest.mark.parametrize(
    "width", ["plain", *(pytest.param(width, marks=pytest.mark.slow) for width in ("avx2", "avx512"))]
)
def test_every_length_of_vector_gives_the_same_games(width, expected, tmp_path):
    if not runs_here(width):
        pytest.skip("not this processor's")
    assert digest(tmp_path, *WIDTHS[width], *SHARED) == expected


def library(name):
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
    return found if Path(found).is_absolute() else None


@pytest.mark.slow
@pytest.mark.parametrize("march", ["-march=native", None])
def test_sanitisers_find_nothing(march, expected, tmp_path):
    preload = [library("libasan.so"), library("libubsan.so")]
    if None in preload:
        pytest.skip("gcc has no sanitisers here")
    flags = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", *SHARED, *([march] if march else [])]
    found = digest(tmp_path, *flags, LD_PRELOAD=" ".join(preload), ASAN_OPTIONS="detect_leaks=0")
    assert found == expected
