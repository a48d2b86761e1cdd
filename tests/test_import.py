"""Importing the package is light and touches nothing."""

import json
import subprocess
import sys

PROBE = """
import sys, json
import numpy as np, torch, pandas

def globals_now():
    random = np.random.get_state()[1].tolist(), torch.random.get_rng_state().tolist()
    return random, torch.get_num_threads(), torch.get_default_dtype()

np.random.seed(7); torch.manual_seed(7)
state = globals_now()
before = set(sys.modules)
import rlbench
from rlbench import measure, study
now = globals_now()
heavy = ["gymnasium", "matplotlib", "IPython", "ipywidgets", "papermill", "tqdm", "pyarrow", "nbformat", "jupyterlab"]
print(json.dumps({"same": state == now, "heavy": [m for m in heavy if m in set(sys.modules) - before]}))
"""


def test_import_is_light_and_touches_no_global_state():
    out = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, timeout=120)
    assert json.loads(out.stdout) == {"same": True, "heavy": []}


def test_a_checkout_beside_the_readers_script_does_not_hide_the_package(tmp_path):
    """A folder named rlbench without __init__.py is a namespace package, which an import hook would come after."""
    (tmp_path / "rlbench").mkdir()
    (tmp_path / "mine.py").write_text("import rlbench; print(rlbench.DQNConfig.__name__)")
    out = subprocess.run([sys.executable, "mine.py"], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert out.stdout.strip() == "DQNConfig", out.stderr + "\nInstall the package again: pip install --no-deps -e ."
