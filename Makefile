# Everything starts here: `make demo` runs the main job, `make test` passes the tests. Both install what they need.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: help setup demo test check slurm-test format bench scale results clean

help:            ## say what can be made
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 12

setup: $(STAMP)  ## make .venv and install what requirements.txt, requirements-dev.txt and requirements-ray.txt name

$(STAMP): requirements.txt requirements-dev.txt requirements-ray.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Berth needs Python >= 3.10; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -r requirements-dev.txt -r requirements-ray.txt
	@touch $@

demo: setup      ## train a policy on the shipped Philly sample, and judge it beside heuristics: tables, pictures, a page
	$(BIN)/python train/philly_train.py --exp_name demo --action_mode easy --warm_rule sjf@easy --load 1.15 --sched_algo saf --clone saf --clone_epochs 20 --lr 5e-4 --epochs 4 --trajs 24 --val_windows 16 --report_windows 0
	$(BIN)/python eval/philly_eval.py --rlmodel data/logs/demo/demo_s0 --sched_algo fcfs,sjf,saf --out data/logs/demo
	$(BIN)/python train/plot.py data/logs/demo/demo_s0 --out data/logs/demo/learning.png

test: setup      ## the tests
	$(BIN)/python -m pytest -n 2

check: setup     ## format, lint, types, import layers, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2

slurm-test: setup  ## the agent beside a real Slurm on loopback (root; installs Debian's slurm-wlm and munge)
	@PATH="$$PATH:/usr/sbin"; command -v slurmctld slurmd munged >/dev/null || \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge; }
	$(BIN)/python -m pytest -m "slurm or not slurm" tests/test_slurm*.py

format: setup    ## put every file into the house's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup     ## the benchmarks: speed as ratios in one run
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/placing.py
	$(BIN)/python benchmarks/environments.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/evaluation.py
	$(BIN)/python benchmarks/hosts.py
	$(BIN)/python benchmarks/serving.py
	$(BIN)/python benchmarks/scaling_out.py

scale: setup     ## what replay and training cost against jobs, GPUs and queue length: docs/scale.md
	$(BIN)/python benchmarks/scale.py

results: setup   ## the long experiments: learned policies against heuristics (goes on where it stopped); samples; placers
	$(BIN)/python benchmarks/headline.py
	$(BIN)/python benchmarks/fresh.py
	$(BIN)/python benchmarks/hosts_study.py
	$(BIN)/python benchmarks/calibrate.py --seeds 40
	$(BIN)/python benchmarks/allocation_study.py

clean:           ## remove what can be made again
	rm -rf $(VENV) .numba_cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
