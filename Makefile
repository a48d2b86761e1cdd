# Set-up is part of every target: the first run makes .venv and installs into it, later ones find the stamp.
# To use an environment of your own, with its own torch: make PYTHON=/path/to/python STAMP= test
VENV := .venv
PYTHON = $(VENV)/bin/python
STAMP = $(VENV)/.installed
DEV_STAMP = $(STAMP:%=%-dev)
BENCH := .venv-benchmark
SYSTEM_PYTHON ?= python3
BENCHMARK :=  # options: make benchmark BENCHMARK="--quick --only update_step"
LAB :=  # flags for JupyterLab: make lab LAB="--port 9000 --no-browser"

.PHONY: report report-full test test-slow lint lab readme benchmark clean

report: $(STAMP)  ## the main job, quick form: every notebook, a report under reports/
	$(PYTHON) -m rlbench report

report-full: $(STAMP)  ## the citable form
	$(PYTHON) -m rlbench report --full

test: $(DEV_STAMP)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m pytest

test-slow: $(DEV_STAMP)
	$(PYTHON) -m pytest -m "slow or not slow"

lint: $(DEV_STAMP)
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m pyright rlbench

lab: $(STAMP)
	$(PYTHON) -m jupyterlab $(if $(filter 0,$(shell id -u)),--allow-root) $(LAB) notebooks

readme: $(STAMP)  ## the README's table from the recorded rows
	$(PYTHON) -m rlbench.readme

benchmark: $(BENCH)/.installed
	$(BENCH)/bin/python -m benchmarks.all $(BENCHMARK)

$(VENV)/.installed: requirements.txt pyproject.toml
	test -x $(VENV)/bin/python || $(SYSTEM_PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --disable-pip-version-check -r requirements.txt
	touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(VENV)/.installed
	$(VENV)/bin/python -m pip install --disable-pip-version-check -r requirements-dev.txt
	touch $@

$(BENCH)/.installed: benchmarks/requirements.txt pyproject.toml
	test -x $(BENCH)/bin/python || $(SYSTEM_PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --disable-pip-version-check -r benchmarks/requirements.txt
	touch $@

clean:
	rm -rf $(VENV) $(BENCH) .pytest_cache .ruff_cache .hypothesis *.egg-info
