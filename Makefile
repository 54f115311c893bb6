# Two targets are all a newcomer needs: `make run` and `make test`. Each sets up .venv first, and only when it has to.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run test lint format check wheel lock icons clean
.PHONY: linux-package linux-smoke mac-lint mac-app mac-test mac-sign mac-dmg mac-release

# Arguments for the programs behind the targets, e.g. make test PYTEST_ARGS="-k sampling".
RUN_ARGS ?=
PYTEST_ARGS ?=
# Test processes side by side. The files of tests are dealt out whole, so that what a file sets up is made once.
PYTEST_WORKERS ?= 2
BIN := .venv/bin

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

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
	for tool in "ruff check ." "ruff format --check ." "shellcheck -x .ci/run packaging/setup/*.sh packaging/linux/*.sh packaging/macos/*.sh" mypy; do \
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

icons: ## draw packaging/icons from resources/icons/pacenote.svg
	@packaging/setup/venv.sh dev
	$(BIN)/python -m pip install --quiet --requirement packaging/icons/requirements.txt
	$(BIN)/python packaging/icons/make.py

linux-package: ## dist/pacenote_*.deb and dist/Pacenote-*-linux-*.tar.xz, with a Python of their own
	@packaging/setup/venv.sh dev
	@packaging/linux/build.sh

linux-smoke: ## install the .deb in a fresh minimal Debian and try it there, offline (as root)
	@packaging/linux/smoke.sh dist/pacenote_*_$$(dpkg --print-architecture).deb

mac-lint: ## what can be checked of the macOS bundle without a Mac: its wheels, contents and licences
	@packaging/setup/venv.sh dev
	@packaging/macos/lint.sh

mac-app: ## Pacenote.app, signed ad hoc (on a Mac)
	@packaging/setup/venv.sh dev
	@packaging/macos/build.sh

mac-test: ## the self-test of the built Pacenote.app
	@packaging/macos/self_test.sh packaging/macos/build/pacenote/macos/app/Pacenote.app

mac-sign: ## sign Pacenote.app with PACENOTE_SIGN_IDENTITY
	@packaging/macos/sign.sh

mac-dmg: ## dist/Pacenote-*.dmg
	@packaging/macos/dmg.sh

mac-release: ## sign, test, notarise, staple, disk image, test again (packaging/README.md)
	@packaging/macos/release.sh

clean: ## remove .venv and everything built; your chats are elsewhere and stay
	rm -rf .venv build dist packaging/macos/build packaging/macos/logs .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
