import os
import sys
from pathlib import Path

import numpy as np
import torch

import rlbench
from rlbench.profiling import frames
from rlbench.profiling.frames import function_phase, nearest, place_of, whose


def test_whose_code_it_is(tmp_path):
    assert whose(str(tmp_path / "train.py")) == "yours"
    assert whose("<ipython-input-3-abc>") == "yours"
    assert whose("/tmp/ipykernel_12/345.py") == "yours"
    assert whose(rlbench.__file__) == "library"
    assert whose("/x/site-packages/stable_baselines3/dqn/dqn.py") == "library"
    for file in (torch.__file__, np.__file__, os.__file__, "<frozen runpy>", "/x/site-packages/gymnasium/core.py"):
        assert whose(file) == "machinery", file


def test_function_names_are_read_by_words():
    named = {
        "store": ("add", "push_transition", "appendRow", "remember"),
        "sample": ("sample", "get_minibatch", "sampleBatch", "_draw"),
        "action": ("select_action", "act", "choose_move", "epsilonGreedyPolicy"),
        None: ("address", "resampled", "step", "main", "<listcomp>", "activate"),
    }
    for phase, functions in named.items():
        assert {function_phase(function) for function in functions} == {phase}


def test_a_place_has_its_source_and_a_short_name(tmp_path, monkeypatch):
    file = tmp_path / "sub" / "x.py"
    file.parent.mkdir()
    file.write_text("a = 1\n    b = 2  \n")
    monkeypatch.chdir(tmp_path)
    place = place_of(str(file), 2, "f")
    assert (place.file, place.line, place.function, place.source, place.whose) == (
        str(Path("sub/x.py")), 2, "f", "b = 2", "yours",
    )  # fmt: skip
    assert place_of(str(tmp_path / "gone.py"), 7, "f").source == ""


def test_the_nearest_frame_is_the_reader_s():
    found = []

    class Probe(torch.nn.Module):
        def forward(self, x):
            found.append(nearest(sys._getframe()))
            return x

    torch.nn.Sequential(Probe())(torch.ones(1))
    assert found[0].f_code.co_name == "forward" and found[0].f_code.co_filename == __file__
    assert nearest(None) is None


def test_the_profiler_s_own_frames_are_not_there():
    package = Path(rlbench.__file__).parent
    for own in ("profiling/frames.py", "phases.py", "__main__.py", "cli/profile.py"):
        assert frames.is_own(str(package / own)), own
    assert not frames.is_own(__file__) and not frames.is_own(str(package / "trainers" / "dqn.py"))


def test_an_edited_file_is_read_anew(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("slow()\n")
    assert place_of(str(file), 1, "f").source == "slow()"
    file.write_text("now_fast()\n")
    frames.forget_sources()
    assert place_of(str(file), 1, "f").source == "now_fast()"
