# Needs Python 3.11, 3.12 or 3.13, pip and make; everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV_READY := $(VENV)/.ready-dev

.PHONY: chaos demo docs evidence families fuzz look mutants shipped-scores tensorboard test lint format clean help

help:
	@echo "make look    environment, then the run inside the package on a page in the browser"
	@echo "make demo    environment, then train, score and plot on the built-in corpus (outputs/demo)"
	@echo "make evidence  the demo, then its trained controls, then the report again"
	@echo "make tensorboard  every run in outputs/ in the browser, at http://127.0.0.1:6006"
	@echo "make shipped-scores  the scores of the run inside the package, compared with those of its release"
	@echo "make docs    the documentation as a site (site/index.html)"
	@echo "make test    environment, then all tests"
	@echo "make fuzz    20,000 wrong settings, files and sentences: a result or one line, never a traceback"
	@echo "make chaos   commands are killed at many of their file operations and meet full disks, and must end as if nothing had been"
	@echo "make families a tiny model of every text model type of transformers: its maps are what it computes, or it is refused"
	@echo "make mutants the core is changed in one place at a time, and its tests must notice"
	@echo "make lint    formatter, linter and type checker, changing nothing"
	@echo "make format  format and mend what can be mended"
	@echo "make clean   remove the environment, the site and caches; runs in outputs/ stay"

$(READY): requirements.lock requirements-torch.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { echo "Python 3.11, 3.12 or 3.13 is needed; name one with make PYTHON=python3.13"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --requirement requirements-torch.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@echo "$(VENV): $$($(BIN)/python -m pip list --format=freeze --disable-pip-version-check | wc -l) packages, $$(du -sm $(VENV) | cut -f1) MB"
	touch $(READY)

# Tests, documentation and checks need more than the package itself.
$(DEV_READY): requirements-dev.lock $(READY)
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements-dev.lock
	touch $(DEV_READY)

demo: $(READY)
	$(BIN)/python scripts/demo.py

look: $(READY)
	$(BIN)/anaphora look

evidence: demo
	$(BIN)/python scripts/controls.py run=outputs/demo
	$(BIN)/python scripts/report.py run=outputs/demo

tensorboard: $(READY)
	$(BIN)/tensorboard --logdir outputs --host 127.0.0.1

shipped-scores: $(READY)
	$(BIN)/python -m experiments.shipped.scores overwrite=true

docs: $(DEV_READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "site/index.html; for its search: $(BIN)/python -m http.server --directory site --bind 127.0.0.1"

test: $(DEV_READY)
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

fuzz: $(DEV_READY)
	$(BIN)/python -m pytest -m hypothesis --numprocesses 2 --hypothesis-profile=fuzz

chaos: $(DEV_READY)
	$(BIN)/python tests/chaos

families: $(DEV_READY)
	$(BIN)/python tests/families

mutants: $(DEV_READY)
	$(BIN)/python tests/mutation

lint: $(DEV_READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(DEV_READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src scripts tests -name __pycache__ -type d -prune -exec rm -rf {} +
