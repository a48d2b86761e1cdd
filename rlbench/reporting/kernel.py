"""The kernel that a report runs in: the Python that runs the report, whatever kernelspecs a machine has."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

ROOT = Path(__file__).resolve().parents[2]
ROWS_VARIABLE = "RLBENCH_ROWS"  # where a notebook leaves its measurement rows


def kernel_class(rows: Path) -> type[AsyncKernelManager]:
    """A kernel manager class whose kernels are this Python with this package, and leave rows in the file `rows`."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    quiet = "--log-level=CRITICAL"  # a kernel that is ended says so as an error; what cells raise comes with the cells
    spec = KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", quiet],
        display_name="Python 3",
        language="python",
        metadata={"supported_encryption": ["curve"]},  # for managers that can encrypt the local sockets
        env={"PYTHONPATH": os.pathsep.join(paths), ROWS_VARIABLE: str(rows), "RLBENCH_HEADLESS": "1"},
    )

    class ThisPython(AsyncKernelManager):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            if self.has_trait("transport_encryption") and zmq.has("curve"):
                self.transport_encryption = "auto"

        @property
        def kernel_spec(self) -> Any:
            return spec

    return ThisPython
