# The two that matter: `make serve` runs it, `make test` proves it. Both set up what they need first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PORT   ?= 8787
STATE  ?= $(if $(XDG_STATE_HOME),$(XDG_STATE_HOME),$(HOME)/.local/state)/hermes-ws
READY  := $(VENV)/.ready

.PHONY: setup serve test check coverage bench docs clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "hermes-ws needs Python 3.11 or later; name one with PYTHON=…"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "Python's venv module is missing: apt-get install python3-venv"; exit 1; }
	@echo "Setting up $(VENV): a minute or two, once."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

# The homes that are served are copies: what a session writes never lands in the checkout.
serve: setup
	@mkdir -p -m 700 "$(STATE)" "$(STATE)/homes"
	@for home in profiles/*/; do name=$$(basename "$$home"); \
	  test -e "$(STATE)/homes/$$name" || { cp -R "$$home" "$(STATE)/homes/$$name" && chmod 700 "$(STATE)/homes/$$name"; }; done
	@exec $(BIN)/hermes-ws serve --profiles-root "$(STATE)/homes" --port $(PORT)

# Three files of tests at a time, for much of it is waiting; those of one file stay together, since they share what they
# start. The warden's run by themselves: they prove that no process is left, and others keep theirs from file to file.
test: setup
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --ignore tests/warden
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/warden

# Under a minute: format, lint, spelling, types, the house and the rooms.
check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell hermes_ws tests bench docs profiles README.md CHANGELOG.md
	$(BIN)/basedpyright
	$(BIN)/python -m pytest -q tests/test_house.py tests/contract tests/wire tests/scope

# How much of each room its own tests go through; fails when one is below its figure (tests/room_coverage.py).
coverage: setup
	$(BIN)/python -m tests.room_coverage

bench: setup
	$(BIN)/python -m bench

docs: setup
	$(BIN)/python -m docs.generate

clean:
	rm -rf $(VENV) build dist
