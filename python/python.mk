# ---- the Python package ----

PYTHON ?= python3
WHEELS := $(BUILD)/wheels
PYTHON_VENV := $(BUILD)/venv
# What the tests import; versions are those that PyPI has.
PYTHON_TEST_PACKAGES ?= pytest numpy torch torchvision transformers accelerate tokenizers safetensors

# Commitments for Python: some files of verde, with SHA-256 of OpenSSL's archive inside, because a wheel must not need the
# system's OpenSSL. It finds librepops beside itself. PORTABLE_SHA=own: without OpenSSL, for another machine's wheel.
# SHARED_CRYPTO=1: with the system's OpenSSL and librepops, as a distribution's package has them.
SHARED_CRYPTO ?=
COMMIT_LIB := $(BUILD)/lib/libverde_commit.so
commit_sha_openssl := verde/commit/digest
commit_sha_own := tests/portable/digest repops/tools/sha256 verde/base/text
commit_obj := $(patsubst %,$(BUILD)/obj/%.o,$(addprefix verde/,$(addprefix commit/,bytes sha tensor tree) \
              $(addprefix base/,buf error map_list order)) $(commit_sha_$(PORTABLE_SHA)))
commit_libs = $(if $(filter openssl,$(PORTABLE_SHA)),$(if $(SHARED_CRYPTO),$(shell pkg-config --libs libcrypto),\
    -Wl$(comma)-Bstatic $(shell pkg-config --libs libcrypto) -Wl$(comma)-Bdynamic))
comma := ,
$(COMMIT_LIB): $(commit_obj) verde/commit/commit.map $(BUILD)/lib/$(RO_SONAME)
	@echo "  LD      $@"
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,--version-script=verde/commit/commit.map $(if $(SANITIZE),,-Wl$(comma)-z$(comma)defs) \
	    -Wl,--gc-sections $(if $(SHARED_CRYPTO),,-Wl$(comma)-rpath$(comma)'$$ORIGIN') $(commit_obj) $(BUILD)/lib/$(RO_SONAME) $(commit_libs) $(LDFLAGS) -o $@

# Another machine's: make wheel CC=aarch64-linux-gnu-gcc ARCH=aarch64 BUILD=build/aarch64 PORTABLE_SHA=own PKG_CFLAGS= \
#   OBJDUMP=aarch64-linux-gnu-objdump STRIP=aarch64-linux-gnu-strip
wheel: ## the Python package with the libraries inside
wheel: $(BUILD)/lib/$(RO_SONAME) $(COMMIT_LIB)
	@mkdir -p $(WHEELS)
	@rm -f $(WHEELS)/*.whl
	@echo "  WHEEL   $(WHEELS)/$$($(PYTHON) python/backend.py $(BUILD)/lib $(WHEELS))"

python-stubs: ## its texts and types, from the operators' table
python-stubs: $(BUILD)/lib/$(RO_SONAME)
	@REPOPS_LIBRARY=$(abspath $<) $(PYTHON) python/generate.py

# TEST_VENV: a virtual environment that has the packages already. The wheel goes into a fresh one all the same, which
# finds the packages there.
test-python: ## installs the wheel in a fresh virtual environment and tests it (PyPI; TEST_VENV=folder: its packages)
test-python: wheel $(BUILD)/bin/verde $(if $(shell command -v g++),$(BUILD)/simt/librepops_cuda.so.1)
	@PYTHON="$(PYTHON)" REPOPS_CUDA_LIBRARY=$(wildcard $(abspath $(BUILD))/simt/librepops_cuda.so.1) VERDE=$(BUILD)/bin/verde sh python/tests/run.sh $(WHEELS) $(PYTHON_VENV) "$(TEST_VENV)" "$(PYTHON_TEST_PACKAGES)" $(ARGS)

# MATRIX_MODELS, MATRIX_BACKENDS, MATRIX_CAPABILITIES, MATRIX_THREADS, TRAIN_STEPS and MATRIX_PAIRS=1 choose a part. A run
# that was stopped goes on: results of the same wheel are kept in $(BUILD)/matrix.
test-python-matrix: ## trains models in every setting, which must give one hash (hours; VENVS="folder folder": PyTorch's versions)
test-python-matrix: wheel
	@PYTHON="$(PYTHON)" sh python/tests/matrix.sh $(WHEELS) $(abspath $(BUILD))/matrix $(VENVS)

EMULATED := $(BUILD)/aarch64
EMULATED_CC ?= aarch64-linux-gnu-gcc
test-python-aarch64: ## the wheel for aarch64 under qemu: PyTorch's models have the same weights there (Debian, PyPI)
	@$(MAKE) --no-print-directory wheel CC="$(EMULATED_CC)" ARCH=aarch64 BUILD=$(EMULATED) PORTABLE_SHA=own PKG_CFLAGS= \
	    OBJDUMP=aarch64-linux-gnu-objdump STRIP=aarch64-linux-gnu-strip CFLAGS=-g0
	@PYTHON="$(PYTHON)" sh python/tests/aarch64.sh $(BUILD) $(EMULATED)/wheels
.PHONY: wheel python-stubs test-python test-python-matrix test-python-aarch64
