"""One torch thread for all tests and their children: small networks are fastest on one, and several stand still under load."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported
