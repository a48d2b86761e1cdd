"""A JupyterLab server of its own and a Chromium, both ended whatever happens."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Lab:
    """A running server: `folder` is where its notebooks lie."""

    url: str
    token: str
    folder: Path

    def call(self, method: str, path: str, body: dict | None = None) -> object:
        """One request to the server's API; its JSON, or None for an empty answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"token {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=20) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def start_kernel(self, notebook: str) -> None:
        """Start the notebook's kernel before a page asks for it."""
        kernel = {"name": "python3"}
        self.call("POST", "/api/sessions", {"path": notebook, "name": notebook, "type": "notebook", "kernel": kernel})

    def end_kernels(self) -> None:
        for kernel in self.call("GET", "/api/kernels"):
            self.call("DELETE", f"/api/kernels/{kernel['id']}")


def _environment(home: Path) -> dict[str, str]:
    """All that Jupyter writes goes below `home`; one torch thread, a front end with a person."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "RLBENCH"))}
    for name in ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR"):
        variables[f"JUPYTER_{name}"] = str(home / name.lower())
    for name in ("SETTINGS_DIR", "WORKSPACES_DIR"):
        variables[f"JUPYTERLAB_{name}"] = str(home / name.lower())
    news = home / "settings_dir" / "@jupyterlab" / "apputils-extension"
    news.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (news / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    return variables | {"HOME": str(home), "IPYTHONDIR": str(home / "ipython"), "OMP_NUM_THREADS": "1"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """JupyterLab on a free port of 127.0.0.1, its files in a temporary folder."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed: pip install -r requirements.txt")
    folder, home = tmp_path / "notebooks", tmp_path / "home"
    folder.mkdir()
    port, token = _free_port(), secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--IdentityProvider.token={token}"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    command += [f"--ServerApp.root_dir={folder}", "--LabApp.extension_manager=readonly"]
    with (tmp_path / "server.log").open("w") as log:
        server = subprocess.Popen(command, env=_environment(home), stdout=log, stderr=log, start_new_session=True)
    running = Lab(f"http://127.0.0.1:{port}", token, folder)
    try:
        _await_server(running, server, tmp_path / "server.log")
        yield running
        running.end_kernels()
    finally:
        _end(server)


def _await_server(lab: Lab, server: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if server.poll() is not None:
            pytest.fail(f"JupyterLab ended at once:\n{log.read_text()[-2000:]}")
        try:
            lab.call("GET", "/api/status")
            return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"JupyterLab did not answer within a minute:\n{log.read_text()[-2000:]}")


def _end(server: subprocess.Popen) -> None:
    """SIGTERM lets the server end its kernels; what then remains of its process group is killed."""
    server.terminate()
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(10)


@pytest.fixture
def page() -> Iterator[object]:
    """A page of a headless Chromium."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on this machine: install the package chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        try:
            yield browser.new_page(viewport={"width": 1280, "height": 1000})
        finally:
            browser.close()
