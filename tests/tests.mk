# Test programs, and the targets that run them.

$(BUILD)/obj/tests/%.o: tests/%.c $(FLAGS)
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) $(PKG_CFLAGS) -DTEST_BUILD='"$(BUILD)"' $(CFLAGS) -c $< -o $@

# If Criterion is missing, a line says so, instead of a compiler error.
$(BUILD)/criterion:
	@mkdir -p $(@D)
	@said=$$(echo '#include <criterion/criterion.h>' | $(CC) $(PKG_CFLAGS) $(CFLAGS) -E -x c - 2>&1 > /dev/null) || { \
	    case $$said in *criterion/criterion.h*) said="The unit tests need Criterion; on Debian: apt-get install libcriterion-dev" ;; esac; \
	    echo "$$said" >&2; exit 1; }
	@touch $@
$(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/unit/*.c)): | $(BUILD)/criterion

# The libraries as unit tests link them, without debugging information: 160 programs would hold 3 GB of it. With sanitizers they would still
# take 12 GB, so there they share one library, which exports all symbols except those of kernels, which come from the plain build.
ifeq ($(SANITIZE),)
tested := $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
link_tested := $(tested) -Wl,--strip-debug
else
tested := $(BUILD)/lib/libtested.so
link_tested := $(tested) -Wl,-rpath,'$$ORIGIN/../lib' $(BUILD)/lib/librepops.a
endif
$(BUILD)/lib/libtested.so: $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@echo "  LD      $@"
	$(Q)$(CC) -shared -Wl,--whole-archive $^ -Wl,--no-whole-archive $(LDFLAGS) $(PKG_LIBS) -lm -o $@

# No test links the command line's main objects.
$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(test_support) $(BUILD)/tests.list $(tools_obj) $(tested)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(filter %.o,$^) $(link_tested) $(LDFLAGS) $(PKG_LIBS) -lcriterion -lm -o $@
# Needed because the symbol map hides the BLAS front's own functions.
$(BUILD)/tests/test_blas: $(blas_obj)
# The engine for AMX with tiles in software, as no machine here has them.
ifeq ($(ARCH),x86_64)
$(BUILD)/tests/test_fixed $(BUILD)/tests/test_fixed_conv: $(BUILD)/obj/tests/emulated/fixed_tiles.o
endif
$(BUILD)/obj/tests/emulated/fixed_tiles.o: repops/cpu/gemm/fixed_tiles.c $(FLAGS)
	@mkdir -p $(@D)
	@echo "  CC      $< (tiles in software)"
	$(Q)$(CC) $(BASE) $(KERNEL_OPT) $(ISA_avx512) -DRO_ISA=emulated -DRO_ISA_avx512=1 -DRO_TILES='"tests/support/tiles.h"' $(CFLAGS) -c $< -o $@
# The typed call of each operator, generated from the table.
$(BUILD)/gen/typed_cases.h: repops/tools/typed.c repops/src/operators.def
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -I. $< -o $(BUILD)/gen/typed
	@$(BUILD)/gen/typed cases > $@
$(BUILD)/obj/tests/unit/test_typed.o: $(BUILD)/gen/typed_cases.h
$(BUILD)/obj/tests/unit/test_typed.o: private BASE += -I$(BUILD)/gen
$(BUILD)/tests/test_gradients: $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/unit/gradient_*.c))
$(BUILD)/tests/planted_%: $(BUILD)/obj/tests/planted/%.o
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $^ $(LDFLAGS) -lcriterion -o $@
# The plain C test program (tests/portable). PORTABLE_SHA=own: without OpenSSL, for machines that lack it.
PORTABLE_SHA ?= openssl
portable_obj := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out tests/portable/digest.c,$(wildcard tests/portable/*.c)))
# The linker only takes those objects from the library that the program needs; none of them uses JSON.
portable_own := $(patsubst %.c,$(BUILD)/obj/%.o,tests/portable/digest.c repops/tools/sha256.c \
                $(addprefix verde/commit/,sha.c tensor.c tree.c tree_update.c bytes.c proof.c record.c) \
                $(filter verde/base/% verde/graph/% verde/exec/% models/%,$(vd_src)))
portable_own := $(filter-out $(patsubst %.c,$(BUILD)/obj/%.o,$(shell grep -lE 'include.*(jansson|json)\.h' verde/exec/*.c)),$(portable_own))
$(BUILD)/lib/libverde_own.a: $(portable_own)
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^
portable_sha_own := $(BUILD)/lib/libverde_own.a
portable_sha_openssl := $(BUILD)/lib/libverde.a
$(BUILD)/tests/portable: $(portable_obj) $(op_cases) $(portable_sha_$(PORTABLE_SHA)) $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $^ $(LDFLAGS) $(if $(filter openssl,$(PORTABLE_SHA)),$(PKG_LIBS),-lm) -o $@
# Decides altered verdicts, for tests/system/altered.sh.
$(BUILD)/tests/judge: $(BUILD)/obj/tests/altered/judge.o $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(filter %.o,$^) $(filter %.a,$^) $(LDFLAGS) -Wl,--wrap=vd_signature_verify $(PKG_LIBS) -o $@
# A `verde` with a deliberately wrong kernel, for tests/system/diff.sh.
$(BUILD)/tests/wrong_kernel: $(BUILD)/obj/tests/diff/planted_kernel.o $(cli_obj) $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(filter %.o,$^) $(filter %.a,$^) $(LDFLAGS) -Wl,--wrap=ro_table_scalar $(PKG_LIBS) -o $@
tests: $(tests) $(BUILD)/tests/portable $(BUILD)/tests/judge $(BUILD)/tests/wrong_kernel $(example_programs)
.PHONY: tests

# The unit tests that take longest: name them for a change near them, T="test_sgemm test_dispute".
SLOW_TESTS := test_sgemm test_dispute test_dispute_transit test_attention
# OP: tests over all operators (tests/unit/each_operator.h) only use this one, and tests/run.sh says so.
check: ## unit tests but the slowest, in two minutes; T="test_cpu test_ref": these alone; OP=softmax: of one operator
	@[ -z "$(OP)" ] || grep -q '^RO_OPERATOR([0-9]*, [A-Z0-9_]*, $(OP),' repops/src/operators.def || \
	    { echo 'OP=$(OP): repops/src/operators.def has no operator of this name' >&2; exit 1; }
	@sh verde/packages.sh $(TEST_PACKAGES)
	@$(MAKE) --no-print-directory $(BUILD)/criterion
	+@$(call with_progress,$(if $(T),$(T:%=$(BUILD)/tests/%),programs tests))
	@OP=$(OP) sh tests/run.sh $(BUILD) $(if $(T),$(T:%=$(BUILD)/tests/%),$(filter-out $(SLOW_TESTS:%=$(BUILD)/tests/%),$(tests)))
.PHONY: check

test: ## install what is missing, build, run every test: half an hour on two cores, 4.5 GB
	@sh verde/packages.sh $(TEST_PACKAGES)
	@$(MAKE) --no-print-directory $(BUILD)/criterion
	@sh verde/packages.sh $(CROSS_PACKAGES) || echo "The tests of other machines' bits will be skipped."
	@sh verde/packages.sh $(OPTIONAL_PACKAGES) || echo "Some tests will be skipped."
	+@$(call with_progress,programs tests)
	@$(MAKE) --no-print-directory run-tests

run-tests: programs tests $(BUILD)/lib/libverde_commit.so
	@OP= sh tests/run.sh $(BUILD)

# gcc and clang at all four levels, of which `make test` has one each, with fewer kernels, the examples and free kernels of other
# machines, and nvcc for all architectures, of which it has two.
test-compilers: ## gcc and clang at four levels, nvcc for all architectures: half an hour
test-compilers: programs
	@ALL_LEVELS=1 sh tests/run.sh $(BUILD) tests/system/bits.sh tests/system/cross.sh tests/lint/ptx.sh
.PHONY: test-compilers

# What other projects test themselves with, and other long ones that `make test` leaves out. Each says what it needs, and is skipped
# without it.
# Not by :=, as make reads the two last lists after this file.
FULL_PACKAGES = libblas-dev libblas-test chromium curl $(WASM_PACKAGES) $(DEB_TEST_PACKAGES) $(SITE_PACKAGES)
test-full: ## the long tests, which `make test` leaves out
test-full: programs
	@sh verde/packages.sh $(FULL_PACKAGES) || echo "Some tests will be skipped."
	@$(MAKE) --no-print-directory verifier || echo "Without verify.html its tests will be skipped."
	@sh tests/run.sh $(BUILD) tests/full/*.sh
.PHONY: test-full

# The CUDA kernels alone, on this CPU; `make test` has these too.
test-simt: ## the CUDA kernels simulated on this CPU
test-simt: lib $(BUILD)/bin/verde
	@sh tests/run.sh $(BUILD) tests/simt/*.sh
# What nvcc made of them, by an emulator of PTX; `make test` has these too.
test-ptx: ## the compiled CUDA kernels emulated on this CPU
test-ptx: lib $(BUILD)/bin/verde $(BUILD)/bin/standin
	@sh tests/run.sh $(BUILD) tests/ptx/*.sh
.PHONY: test-simt test-ptx

# The same tests under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer; of free kernels those for this machine's best
# instruction set. QUICK=1: unit tests but the slowest, and the scripts in which bytes come from others or from damaged files, with
# scalar kernels and the best ones.
ASAN_SCRIPTS := bad_connections check data errors fuzz keep page pages provide_dispute provide_trouble resume rounding_log serve unknown
asan_tests = $(if $(QUICK),$(filter-out $(SLOW_TESTS:%=$(BUILD)/tests/%),$(tests)),$(tests))
test-asan: ## the tests under the sanitizers; QUICK=1: half of them
	@sh verde/packages.sh $(ASAN_PACKAGES)
	@$(MAKE) --no-print-directory -j$$(nproc) lib
	@isas=$$(sh tests/isas.sh); best=$${isas##* }; \
	$(MAKE) --no-print-directory -j$$(nproc) run-asan BUILD=$(BUILD)/asan OPT=-O1 \
	    PLAIN_BUILD=$(BUILD) RUN_ISAS="$(if $(QUICK),scalar $$best,$$isas)" FREE_ISAS=$$best \
	    SANITIZE="-g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"

run-asan: programs $(asan_tests) $(if $(QUICK),,$(BUILD)/tests/portable $(BUILD)/tests/wrong_kernel $(example_programs)) $(planted)
	@OP= sh tests/asan.sh $(BUILD) $(if $(QUICK),$(asan_tests) $(ASAN_SCRIPTS:%=tests/system/%.sh))

lint: ## layers, flags, symbols, format, the operators' table, formats, owners, promises
	@sh tests/lint/layers.sh
	@sh tests/lint/fast_math.sh
	@sh tests/lint/operators.sh
	@sh tests/lint/formats.sh
	@sh tests/lint/golden.sh
	@sh tests/lint/phases.sh
	@sh tests/lint/order.sh || [ $$? -eq 77 ]
	@sh tests/lint/owners.sh || [ $$? -eq 77 ]
	@sh tests/lint/callers.sh || [ $$? -eq 77 ]
	@sh tests/lint/format.sh || [ $$? -eq 77 ]
	@[ ! -d $(BUILD)/obj/repops/cpu ] || sh tests/lint/symbols.sh $(BUILD)

# All 2^32 inputs of the elementary functions: an hour and a half, not part of the tests. ARGS: names of functions; "--every 1009": some inputs.
exhaustive: ## functions of one element over all 2^32 inputs: an hour and a half
	@echo '#include <mpfr.h>' | $(CC) -E -x c - > /dev/null 2>&1 || \
	    { echo "make exhaustive needs MPFR: apt-get install libmpfr-dev" >&2; exit 1; }
	$(Q)$(MAKE) --no-print-directory $(BUILD)/tests/exhaustive_math
	$(BUILD)/tests/exhaustive_math $(ARGS)
$(BUILD)/tests/exhaustive_math: tests/exhaustive/math.c tests/exhaustive/pairs.c $(ISAS:%=$(BUILD)/obj/repops/tools/functions_%.o) $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(BASE) -O2 $(if $(filter x86_64,$(ARCH)),-mfma) $(CFLAGS) $^ $(LDFLAGS) -lmpfr -lm -o $@

# On a GPU, with only nvcc and a C compiler: prints tables, and writes bench/results/<device>/*.json. ARGS=--quick: two minutes of it;
# ARGS=--small: tiny sizes on the shim, without a GPU.
test-cuda: ## on a GPU: is it right?
	@sh tests/cuda/run.sh $(BUILD) $(ARGS)
bench-cuda: ## on a GPU: is it fast?
	@sh bench/cuda.sh $(BUILD) $(ARGS)
.PHONY: test-cuda bench-cuda
cuda_job := $(BUILD)/obj/tests/cuda/job.o
$(BUILD)/obj/tests/cuda/%.o: tests/cuda/%.c $(FLAGS)
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) -c $< -o $@
$(BUILD)/cuda/training: $(BUILD)/obj/tests/cuda/training.o $(cuda_job) $(BUILD)/lib/libverde_own.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $^ $(LDFLAGS) -o $@
$(BUILD)/cuda/%: tests/cuda/%.c $(op_cases) $(tools_obj) $(BUILD)/obj/repops/tools/sha256.o $(BUILD)/lib/librepops.a
	$(cuda_program)
cuda-tests: lib $(addprefix $(BUILD)/cuda/,cases sgemm tree memory fused fixed guard plain free training)
$(BUILD)/cuda/device: tests/cuda/device.cu
	@mkdir -p $(@D)
	$(Q)$(NVCC) -cudart static $< -o $@
# Builds what both run on a machine with enough time: make cuda-kit CUDA_ARCHS=90; then on the GPU machine: BUILT=1 make bench-cuda.
UNROLL ?= 16 8 4
cuda-kit:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/gpu cuda cuda-tests $(addprefix $(BUILD)/gpu/,bench/cuda cuda/device)
	@for steps in $(UNROLL); do $(MAKE) --no-print-directory BUILD=$(BUILD)/gpu/unroll$$steps GEMM_UNROLL=$$steps cuda || exit 1; done
	@strip -g $(addprefix $(BUILD)/gpu/,bin/repops-conform cuda/cases cuda/sgemm cuda/tree cuda/memory cuda/fused cuda/fixed cuda/guard cuda/plain cuda/free cuda/training bench/cuda)
	@rm -f $(BUILD)/gpu/cuda/*.d $(BUILD)/gpu/bench/*.d
.PHONY: cuda-tests cuda-kit
