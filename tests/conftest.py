"""One torch thread for all tests and their children: small networks are fastest on one, and several stand still under load."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported

from hypothesis import settings

settings.register_profile("rlbench", deadline=None)  # a slow machine is no failure
settings.load_profile("rlbench")
