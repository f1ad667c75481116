# ---- the Python package ----

PYTHON ?= python3
WHEELS := $(BUILD)/wheels
PYTHON_VENV := $(BUILD)/venv
# What the tests import; versions are those that PyPI has.
PYTHON_TEST_PACKAGES ?= pytest numpy torch torchvision transformers accelerate

wheel: ## the Python package with the library inside
wheel: $(BUILD)/lib/$(RO_SONAME)
	@mkdir -p $(WHEELS)
	@rm -f $(WHEELS)/*.whl
	@echo "  WHEEL   $(WHEELS)/$$($(PYTHON) python/backend.py $< $(WHEELS))"

python-stubs: ## its texts and types, from the operators' table
python-stubs: $(BUILD)/lib/$(RO_SONAME)
	@REPOPS_LIBRARY=$(abspath $<) $(PYTHON) python/generate.py

# TEST_VENV: a virtual environment that has the packages already. The wheel goes into a fresh one all the same, which
# finds the packages there.
test-python: ## installs the wheel in a fresh virtual environment and tests it (PyPI; TEST_VENV=folder: its packages)
test-python: wheel
	@PYTHON="$(PYTHON)" sh python/tests/run.sh $(WHEELS) $(PYTHON_VENV) "$(TEST_VENV)" "$(PYTHON_TEST_PACKAGES)" $(ARGS)
.PHONY: wheel python-stubs test-python
