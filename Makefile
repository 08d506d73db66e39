# The project's habits. On a fresh clone every target works as it is: the virtual environment is made first, and what
# comes from Debian is installed if it is missing.
#
#   make demo      explore two switches, compare them, confirm the findings on both; two minutes
#   make test      everything that has to hold: lint, and all tests
#   make lint      ruff and mypy
#   make bench     measure; the numbers go to results/bench.md
#   make results   the whole evaluation again; the tables go to results/
#   make agents    our own switches, in agents/build/
#   make env       the virtual environment .venv
#   make system    Debian's packages
#   make clean     remove what was made, except .venv

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
JOBS ?= 2
DEMO := demo
DEMO_SCENARIOS := packet_out stats_request set_config queue_config

# command:package; the command tells whether the package is there.
TOOLCHAIN := gcc:gcc,libc6-dev ip:iproute2
SYSTEM := $(TOOLCHAIN) g++:g++ git:git ovs-vswitchd:openvswitch-switch valgrind:valgrind chromium:chromium tshark:tshark \
    faketime:faketime openssl:openssl

.PHONY: demo test lint bench results agents env system toolchain clean
.DEFAULT_GOAL := help
.PHONY: help
help:
	@sed -n '/^#   /s/^#   //p' Makefile

# Status 1 of crosscheck, and of report, says that there are differences: that is what we came for.
demo: env agents
	@rm -rf $(DEMO)
	@echo "== explore: every path of two switches"
	@set -e; for scenario in $(DEMO_SCENARIOS); do for agent in reference vswitch; do \
	    $(BIN)/soft explore agents/build/$$agent --test $$scenario --jobs $(JOBS) -o $(DEMO)/$$agent/$$scenario; \
	done; done
	@echo "== crosscheck: the inputs that they answer differently"
	@$(BIN)/soft crosscheck $(DEMO)/reference $(DEMO)/vswitch --jobs $(JOBS) -o $(DEMO)/findings >/dev/null || [ $$? = 1 ]
	@echo "== replay: the same inputs to both live switches"
	@$(BIN)/soft replay $(DEMO)/findings \
	    --agent reference=agents/build/reference --agent vswitch=agents/build/vswitch
	@echo "== report"
	@$(BIN)/soft report $(DEMO)/findings || [ $$? = 1 ]

# Lint first: it is quick, and so is the news. Tests of one file share what they start, so a file stays in one process.
# A live agent is quiet when it has been silent for some milliseconds, which a busy machine may stretch: what failed
# beside other tests has to hold alone.
test: system env agents lint
	@echo "== tests"
	$(BIN)/pytest -n $(JOBS) --dist loadfile || { echo "== again, alone: what failed"; $(BIN)/pytest --last-failed; }

lint: env
	@echo "== lint"
	$(BIN)/ruff check
	$(BIN)/mypy

bench: system env agents
	$(BIN)/python -m results.bench

results: system env agents
	$(BIN)/python -m results.make --jobs $(JOBS)

agents: toolchain
	@echo "== agents"
	@$(MAKE) --silent -j$(JOBS) -C agents

env: $(INSTALLED)

# The build backend is one of the exact versions too, and nothing is fetched if all of it is there.
$(INSTALLED): pyproject.toml constraints.txt
	@echo "== virtual environment in $(VENV)"
	@sh .ci/system "$(PYTHON):python3" "ensurepip:python3-venv"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt setuptools
	$(BIN)/pip install --quiet --no-build-isolation -c constraints.txt -e '.[explore,dev]'
	@touch $@

system:
	@echo "== Debian's packages"
	@sh .ci/system $(SYSTEM)

toolchain:
	@sh .ci/system $(TOOLCHAIN)

clean:
	$(MAKE) -C agents clean
	rm -rf $(DEMO) findings .pytest_cache .mypy_cache .ruff_cache .hypothesis
