# Two targets are all a newcomer needs: `make run` and `make test`. Each sets up .venv first, and only when it has to.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run test lint format check wheel lock clean

# Arguments for the programs behind the targets, e.g. make test PYTEST_ARGS="-k sampling".
RUN_ARGS ?=
PYTEST_ARGS ?=
# Test processes side by side. The files of tests are dealt out whole, so that what a file sets up is made once.
PYTEST_WORKERS ?= 2
BIN := .venv/bin

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

run: ## open the window (RUN_ARGS="..." are handed to it)
	@packaging/setup/venv.sh run
	@packaging/setup/window.sh $(RUN_ARGS)

test: ## run all tests (PYTEST_ARGS="..." are handed to pytest)
	@packaging/setup/venv.sh dev
	@packaging/setup/system_libraries.sh
	@packaging/setup/virtual_metal.sh
	@QT_QPA_PLATFORM=$${QT_QPA_PLATFORM:-offscreen} $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile $(PYTEST_ARGS)

lint: ## ruff, shellcheck, and mypy on engine/ and app/; all of them, whatever the first finds
	@packaging/setup/venv.sh dev
	@failed=0; export PATH="$$PWD/$(BIN):$$PATH"; \
	for tool in "ruff check ." "ruff format --check ." "shellcheck -x .ci/run packaging/setup/*.sh" mypy; do \
	    echo "$$tool"; $$tool || failed=1; \
	done; exit $$failed

format: ## let ruff mend what it can
	@packaging/setup/venv.sh dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check: lint test ## lint, then test

wheel: ## dist/pacenote-*.whl
	@packaging/setup/venv.sh dev
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

lock: ## write packaging/constraints.txt from what .venv holds (see CONTRIBUTING.md)
	$(BIN)/python packaging/setup/lock.py

clean: ## remove .venv and everything built; your chats are elsewhere and stay
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
