# RepOps and Verde. `make demo` and `make test` install what is missing (Debian), build and run;
# `make lib` needs only a C compiler. See README.md.

BUILD ?= build
OPT ?= -O2
# Kernels profit from -O3; any other OPT applies to them too, so that bits can be compared.
KERNEL_OPT ?= $(if $(filter -O2,$(OPT)),-O3,$(OPT))
SANITIZE ?=
PREFIX ?= /usr/local

# `make V=1` shows the commands.
Q := $(if $(V),,@)

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
        -Wno-missing-field-initializers
# SPEC.md section 1: no contraction, no reassociation, whatever the compiler's defaults are.
BITS := -ffp-contract=off -fno-fast-math -fno-math-errno -fno-trapping-math
# gcc for s390x, in the modes of ISO C, would evaluate float expressions in double.
BITS += $(if $(filter s390x,$(ARCH)),-fexcess-precision=fast)
BASE := -std=c11 -g -fPIC -D_GNU_SOURCE -I. -Irepops/include $(WARN) $(BITS) $(SANITIZE) -pthread -MMD -MP
# Before glibc 2.34, dlopen was in a library of its own.
LDFLAGS += $(SANITIZE) -pthread -ldl

RO_VERSION := $(shell sed -n 's/^\#define RO_VERSION *"\(.*\)"/\1/p' repops/include/repops/repops.h)
RO_SONAME := librepops.so.1
BLAS_SONAME := librepops_blas.so.1
# Another machine's: make lib CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar ARCH=aarch64 BUILD=build/aarch64
ARCH ?= $(shell uname -m)
ISAS := scalar $(if $(filter x86_64,$(ARCH)),avx2 avx512) $(if $(filter aarch64,$(ARCH)),neon)
ISA_scalar :=
ISA_avx2 := -mavx2 -mfma
ISA_avx512 := -mavx512f -mavx512vl -mavx512dq -mavx512bw -mavx2 -mfma -mprefer-vector-width=512
ISA_neon :=

ro_src := $(wildcard repops/src/*.c repops/ref/*.c)
ro_cpu := $(wildcard repops/cpu/*.c)
ro_free := $(wildcard repops/free/*.c)
# Builds that compare compilers, or look for errors, compile kernels for RUN_ISAS alone, those that the machine runs. Free kernels
# promise no bits, and are many: FREE_ISAS. The others come from PLAIN_BUILD.
PLAIN_BUILD ?= $(BUILD)
RUN_ISAS ?= $(ISAS)
FREE_ISAS ?= $(if $(filter $(BUILD),$(PLAIN_BUILD)),$(ISAS))
cpu_build = $(if $(filter $(1),$(RUN_ISAS)),$(BUILD),$(PLAIN_BUILD))
free_build = $(if $(filter $(1),$(FREE_ISAS)),$(BUILD),$(PLAIN_BUILD))
ro_obj := $(ro_src:%.c=$(BUILD)/obj/%.o) \
          $(foreach isa,$(ISAS),$(foreach real,f32 f64,$(ro_free:repops/free/%.c=$(call free_build,$(isa))/obj/repops/free/$(isa)_$(real)/%.o))) \
          $(foreach isa,$(ISAS),$(ro_cpu:repops/cpu/%.c=$(call cpu_build,$(isa))/obj/repops/cpu/$(isa)/%.o))
vd_src := $(wildcard verde/base/*.c verde/graph/*.c verde/commit/*.c verde/log/*.c verde/exec/*.c verde/protocol/*.c \
          verde/net/*.c verde/job/*.c $(filter-out models/example_%,$(wildcard models/*.c)))
cli_src := $(wildcard verde/cli/*.c)
vd_obj := $(vd_src:%.c=$(BUILD)/obj/%.o)
cli_obj := $(cli_src:%.c=$(BUILD)/obj/%.o)
test_support := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/support/*.c))
planted := $(patsubst tests/planted/%.c,$(BUILD)/tests/planted_%,$(wildcard tests/planted/*.c))
tests := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c))

# Recursive (=), read only when a verde target is built: after packages were installed.
PKGS := openssl zlib yaml-0.1 libevent libevent_openssl libevent_pthreads libcurl jansson
PKG_CFLAGS = $(eval PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null))$(PKG_CFLAGS)
PKG_LIBS = $(eval PKG_LIBS := $(shell pkg-config --libs $(PKGS)) -lm)$(PKG_LIBS)

.PHONY: all build lib install demo test run-tests test-asan run-asan lint exhaustive clean format
all: build

build: lib $(BUILD)/bin/verde $(BUILD)/bin/standin
lib: $(BUILD)/lib/librepops.a $(BUILD)/lib/$(RO_SONAME) $(BUILD)/lib/$(BLAS_SONAME) $(BUILD)/bin/repops-conform

# Structs pass between librepops and librepops_cuda: each tells the other which headers it was built from (device.h).
interface := $(wildcard repops/include/repops/*.h repops/src/*.h)
$(BUILD)/obj/repops/src/op.o: $(interface)
$(BUILD)/obj/repops/src/op.o: override CFLAGS += -DRO_INTERFACE=$(shell cat $(interface) | cksum | cut -d' ' -f1)
$(BUILD)/obj/repops/src/%.o: repops/src/%.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(KERNEL_OPT) -fvisibility=hidden $(CFLAGS) -c $< -o $@
$(BUILD)/obj/repops/blas/%.o: repops/blas/%.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) -fvisibility=hidden $(CFLAGS) -c $< -o $@
$(BUILD)/obj/repops/ref/%.o: repops/ref/%.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) -fvisibility=hidden $(CFLAGS) -c $< -o $@

$(BUILD)/obj/repops/tools/%.o: repops/tools/%.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) -I$(BUILD)/gen $(CFLAGS) -c $< -o $@

# Each kernel source is compiled once per instruction set, under other names (repops/cpu/isa.h). -g1: where the compiler
# keeps each variable takes it a third of the time.
define isa_rule
$(BUILD)/obj/repops/cpu/$(1)/%.o: repops/cpu/%.c
	@mkdir -p $$(@D)
	@echo "  CC      $$< ($(1))"
	$$(Q)$$(CC) $$(BASE) -g1 $$(KERNEL_OPT) $$(ISA_$(1)) -DRO_ISA=$(1) -DRO_ISA_$(1)=1 -fvisibility=hidden $$(CFLAGS) -c $$< -o $$@
endef
$(foreach isa,$(ISAS),$(eval $(call isa_rule,$(isa))))
# What describes a product is stored field by field: a vector load of several would wait for the stores, which small
# products notice.
$(foreach isa,$(ISAS),$(patsubst %,$(BUILD)/obj/repops/cpu/$(isa)/%.o,gemm gemm_small products)): \
  private BASE += -fno-tree-slp-vectorize
# Free kernels once more for each type that they compute in (repops/free/kernel.h).
define free_rule
$(BUILD)/obj/repops/free/$(1)_$(2)/%.o: repops/free/%.c
	@mkdir -p $$(@D)
	@echo "  CC      $$< ($(1), $(2))"
	$$(Q)$$(CC) $$(BASE) -g1 $$(KERNEL_OPT) $$(ISA_$(1)) -DRO_ISA=$(1) -DRO_ISA_$(1)=1 -DRO_REAL=$(2) -DRO_IS_$(2)=1 -fvisibility=hidden \
	  $$(CFLAGS) -c $$< -o $$@
endef
$(foreach isa,$(ISAS),$(foreach real,f32 f64,$(eval $(call free_rule,$(isa),$(real)))))

# repops-conform: the golden files are compiled in, the elementary functions once per instruction set.
conform_obj := $(patsubst %,$(BUILD)/obj/repops/tools/%.o,conform report golden product fused bounded case_run sha256 $(ISAS:%=functions_%))
define functions_rule
$(BUILD)/obj/repops/tools/functions_$(1).o: repops/tools/functions.c
	@mkdir -p $$(@D)
	@echo "  CC      $$< ($(1))"
	$$(Q)$$(CC) $$(BASE) $$(KERNEL_OPT) $$(ISA_$(1)) -DRO_ISA=$(1) -DRO_ISA_$(1)=1 $$(CFLAGS) -c $$< -o $$@
endef
$(foreach isa,$(ISAS),$(eval $(call functions_rule,$(isa))))
$(BUILD)/gen/golden_%.h: tests/golden/%.txt
	@mkdir -p $(@D)
	@sed -e '/^#/d' -e 's/.*/"&",/' $< > $@
$(BUILD)/obj/repops/tools/conform.o: $(BUILD)/gen/golden_ops.h $(BUILD)/gen/golden_functions.h \
    $(BUILD)/gen/golden_sgemm.h $(BUILD)/gen/golden_fused.h $(BUILD)/gen/golden_bounded.h
$(BUILD)/bin/repops-conform: $(conform_obj) $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $^ $(LDFLAGS) -o $@

# The golden cases, which tests and repops-conform run.
tools_obj := $(patsubst %,$(BUILD)/obj/repops/tools/%.o,golden product fused bounded case_run)

# ---- CUDA: a library of its own, for every architecture that the toolkit compiles for ----

# Besides the reports of a compilation its PTX is kept: tests/lint/ptx.sh looks at both.

NVCC ?= nvcc
cuda_src := $(wildcard repops/cuda/*.cu)
cuda_free = $(foreach real,f32 f64,$(1)/$(real)/free.o)
# Every architecture has code of its own, or runs that of an older one of its major version. Sources know two kinds: sm_75,
# and those with asynchronous copies, which share their PTX; it also serves what comes later.
CUDA_ARCHS ?= $(filter $(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code)),75 80 86 90 100 110 120)
NVARCH = $(foreach a,$(CUDA_ARCHS),-gencode=arch=compute_$(if $(filter 75,$(a)),75,80),code=sm_$(a)) \
         -gencode=arch=compute_80,code=compute_80
NVFLAGS := -std=c++20 --extended-lambda -O3 -I. -Irepops/include -fmad=false -ftz=false -prec-div=true \
           -prec-sqrt=true -Xcompiler=-fPIC,-fvisibility=hidden,-ffp-contract=off,-fno-fast-math,-Wall -Xptxas=-v -Xfatbin=-compress-all
# Free kernels promise no bits and have no asynchronous copies: sm_86 (and sm_89) runs sm_80's, and all share one PTX.
FREE_NVARCH = $(foreach a,$(if $(filter 80,$(CUDA_ARCHS)),$(filter-out 86 89,$(CUDA_ARCHS)),$(CUDA_ARCHS)),-gencode=arch=compute_75,code=sm_$(a)) \
              -gencode=arch=compute_75,code=compute_75
cuda: $(BUILD)/lib/librepops_cuda.so.1
define nvcc_rule
	@mkdir -p $(@:.o=.keep)
	@echo "  NVCC    $<$(if $(1), ($(1)))"
	$(Q)$(NVCC) $(NVFLAGS) $(2) --keep --keep-dir $(@:.o=.keep) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@ \
	    2> $(@:.o=.ptxas) || { cat $(@:.o=.ptxas); exit 1; }
	@grep -E 'warning|error' $(@:.o=.ptxas) || true
	@mv $(@:.o=.keep)/*.ptx $(@D) && rm -rf $(@:.o=.keep)
endef
# Objects for other architectures are made again: what runs would be their PTX, translated by the driver.
cuda_archs := $(BUILD)/obj/repops/cuda/archs
$(cuda_archs): FORCE
	@mkdir -p $(@D)
	@[ "$$(cat $@ 2> /dev/null)" = "$(CUDA_ARCHS)" ] || echo "$(CUDA_ARCHS)" > $@
FORCE:
.PHONY: FORCE
$(BUILD)/obj/repops/cuda/%.o: repops/cuda/%.cu $(cuda_archs)
	$(call nvcc_rule,,$(NVARCH))
$(BUILD)/obj/repops/cuda/free/f32/%.o: repops/cuda/free/%.cu $(cuda_archs)
	$(call nvcc_rule,f32,$(FREE_NVARCH) -DRO_REAL=f32 -DRO_IS_f32=1)
$(BUILD)/obj/repops/cuda/free/f64/%.o: repops/cuda/free/%.cu $(cuda_archs)
	$(call nvcc_rule,f64,$(FREE_NVARCH) -DRO_REAL=f64 -DRO_IS_f64=1)
# Code that names the lines it comes from, for tests/lint/ptx.sh.
$(BUILD)/lines/%.ptx: repops/cuda/%.cu
	@mkdir -p $(@D)
	@echo "  NVCC    $< (lines)"
	$(Q)$(NVCC) $(NVFLAGS) -arch=compute_80 -lineinfo -ptx $< -o $@
$(BUILD)/lines/free_%.ptx: repops/cuda/free/free.cu
	@mkdir -p $(@D)
	@echo "  NVCC    $< ($*, lines)"
	$(Q)$(NVCC) $(NVFLAGS) -arch=compute_80 -lineinfo -ptx -DRO_REAL=$* -DRO_IS_$*=1 $< -o $@
cuda-lines: $(cuda_src:repops/cuda/%.cu=$(BUILD)/lines/%.ptx) $(BUILD)/lines/free_f32.ptx $(BUILD)/lines/free_f64.ptx
.PHONY: cuda-lines
$(BUILD)/lib/librepops_cuda.so.1: $(cuda_src:%.cu=$(BUILD)/obj/%.o) $(call cuda_free,$(BUILD)/obj/repops/cuda/free) \
    $(BUILD)/obj/repops/src/op.o repops/librepops_cuda.map
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(NVCC) -shared -cudart static -Xlinker -soname,librepops_cuda.so.1,-Bsymbolic,--version-script=repops/librepops_cuda.map \
	    $(filter %.o,$^) -o $@
.PHONY: cuda

# The same sources on a CPU, threads as fibers in random order (tests/simt/cuda_runtime.h).
SIMT_FLAGS := -std=c++20 -g1 -O1 -fPIC -I. -Irepops/include -Itests/simt -Wall -Wextra -Wno-unknown-pragmas -Wno-missing-field-initializers \
              -fvisibility=hidden $(BITS) $(if $(filter x86_64,$(ARCH)),-mfma) -fsanitize=alignment -fno-sanitize-recover=all
simt: $(BUILD)/simt/librepops_cuda.so.1 $(addprefix $(BUILD)/simt/,cases sgemm tree memory fused free shim plans) $(BUILD)/simt/shim_tsan $(BUILD)/simt/traffic.so $(BUILD)/simt/tsan/librepops_cuda.so.1 $(addprefix $(BUILD)/simt/tsan/,cases sgemm tree fused free)
$(BUILD)/simt/obj/%.o: repops/cuda/%.cu
	@mkdir -p $(@D)
	@echo "  SIMT    $<"
	$(Q)$(CXX) $(SIMT_FLAGS) -MMD -MP -x c++ -c $< -o $@
define simt_free_rule
$(BUILD)/simt/$(1)obj/free/$(2)/%.o: repops/cuda/free/%.cu
	@mkdir -p $$(@D)
	@echo "  SIMT    $$< ($(2)$(if $(1),$(comma) ThreadSanitizer))"
	$$(Q)$$(CXX) $$(SIMT_FLAGS) $(if $(1),-fsanitize=thread) -DRO_REAL=$(2) -DRO_IS_$(2)=1 -MMD -MP -x c++ -c $$< -o $$@
endef
comma := ,
$(foreach real,f32 f64,$(foreach tsan,no tsan/,$(eval $(call simt_free_rule,$(tsan:no=),$(real)))))
$(BUILD)/simt/obj/simt.o: tests/simt/simt.cc
	@mkdir -p $(@D)
	@echo "  SIMT    $<"
	$(Q)$(CXX) $(SIMT_FLAGS) -MMD -MP -c $< -o $@
$(BUILD)/simt/librepops_cuda.so.1: $(cuda_src:repops/cuda/%.cu=$(BUILD)/simt/obj/%.o) $(BUILD)/simt/obj/simt.o \
    $(call cuda_free,$(BUILD)/simt/obj/free) $(BUILD)/obj/repops/src/op.o
	@echo "  LD      $@"
	$(Q)$(CXX) -shared -fsanitize=alignment -Wl,-Bsymbolic $^ -o $@
# The shim's own test, also under ThreadSanitizer: the scheduler is not instrumented, kernels are.
$(BUILD)/simt/shim: tests/simt/shim.cu $(BUILD)/simt/obj/simt.o
	@echo "  SIMT    $@"
	$(Q)$(CXX) $(SIMT_FLAGS) -MMD -MP -MF $@.d -x c++ $< -x none $(BUILD)/simt/obj/simt.o -o $@
$(BUILD)/simt/plans: tests/simt/plans.cu $(BUILD)/simt/obj/gemm_plan.o $(BUILD)/simt/obj/simt.o
	@echo "  SIMT    $@"
	$(Q)$(CXX) $(SIMT_FLAGS) -MMD -MP -MF $@.d -x c++ $< -x none $(BUILD)/simt/obj/gemm_plan.o $(BUILD)/simt/obj/simt.o -o $@
$(BUILD)/simt/obj/simt_tsan.o: tests/simt/simt.cc
	@mkdir -p $(@D)
	@echo "  SIMT    $< (ThreadSanitizer)"
	$(Q)$(CXX) $(SIMT_FLAGS) -DSIMT_TSAN -MMD -MP -c $< -o $@
$(BUILD)/simt/shim_tsan: tests/simt/shim.cu $(BUILD)/simt/obj/simt_tsan.o
	@echo "  SIMT    $@"
	$(Q)$(CXX) $(SIMT_FLAGS) -fsanitize=thread -MMD -MP -MF $@.d -x c++ $< -x none $(BUILD)/simt/obj/simt_tsan.o -o $@
# Programs that test a device: plain C, for machines without Criterion too. Their headers are in their .d files.
define cuda_program
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(BASE) $(OPT) -Itests/unit $(CFLAGS) -MF $@.d -MT $@ $(filter %.c %.o %.a,$^) $(LDFLAGS) -lm -o $@
endef
# All kernels so, their vectors accessed as vectors. The program brings the sanitizer's runtime; librepops itself is as it always is, but for its pool of threads:
# these meet by atomic operations, which the sanitizer sees only in what was compiled for it.
$(BUILD)/simt/tsan/obj/%.o: repops/cuda/%.cu
	@mkdir -p $(@D)
	@echo "  SIMT    $< (ThreadSanitizer)"
	$(Q)$(CXX) $(SIMT_FLAGS) -fsanitize=thread -fno-tree-sra -MMD -MP -x c++ -c $< -o $@
# Free kernels in one type: they are the same sources.
$(BUILD)/simt/tsan/librepops_cuda.so.1: $(cuda_src:repops/cuda/%.cu=$(BUILD)/simt/tsan/obj/%.o) \
    $(BUILD)/simt/tsan/obj/free/f64/free.o $(BUILD)/simt/obj/free/f32/free.o \
    $(BUILD)/simt/obj/simt_tsan.o $(BUILD)/obj/repops/src/op.o
	@echo "  LD      $@"
	$(Q)$(CXX) -shared -fsanitize=alignment -fsanitize=thread -Wl,-Bsymbolic $^ -o $@
# The same kernels, whose accesses are counted: no sanitizer.
$(BUILD)/simt/obj/%_traffic.o: tests/simt/%.cc
	@mkdir -p $(@D)
	@echo "  SIMT    $< (traffic)"
	$(Q)$(CXX) $(SIMT_FLAGS) -DSIMT_TRAFFIC -MMD -MP -c $< -o $@
$(BUILD)/simt/traffic.so: $(cuda_src:repops/cuda/%.cu=$(BUILD)/simt/tsan/obj/%.o) $(call cuda_free,$(BUILD)/simt/obj/free) \
    $(BUILD)/simt/obj/simt_traffic.o $(BUILD)/simt/obj/traffic_traffic.o $(BUILD)/obj/repops/src/op.o
	@echo "  LD      $@"
	$(Q)$(CXX) -shared -fsanitize=alignment -Wl,-Bsymbolic $^ -o $@
$(BUILD)/simt/tsan/obj/pool.o: repops/src/pool.c
	@mkdir -p $(@D)
	@echo "  CC      $< (ThreadSanitizer)"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) -fsanitize=thread -MMD -MP -c $< -o $@
$(BUILD)/simt/tsan/%: tests/cuda/%.c $(tools_obj) $(BUILD)/obj/repops/tools/sha256.o $(BUILD)/simt/tsan/obj/pool.o $(BUILD)/lib/librepops.a
	$(cuda_program) -fsanitize=thread
$(BUILD)/simt/%: tests/cuda/%.c $(tools_obj) $(BUILD)/obj/repops/tools/sha256.o $(BUILD)/lib/librepops.a
	$(cuda_program)
.PHONY: simt

$(BUILD)/obj/verde/%.o: verde/%.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) $(PKG_CFLAGS) $(CFLAGS) -c $< -o $@
# Checksums of every tensor that is logged: vectorised like a kernel.
$(BUILD)/obj/verde/log/sums.o: OPT := $(KERNEL_OPT)
$(BUILD)/obj/models/%.o: models/%.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) -c $< -o $@
$(BUILD)/obj/tests/%.o: tests/%.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) $(PKG_CFLAGS) -DTEST_BUILD='"$(BUILD)"' $(CFLAGS) -c $< -o $@

$(BUILD)/lib/librepops.a: $(ro_obj)
	@mkdir -p $(@D)
	@rm -f $@
	@echo "  AR      $@"
	$(Q)$(AR) rcs $@ $^
$(BUILD)/lib/$(RO_SONAME): $(ro_obj) repops/librepops.map
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) -shared -Wl,-soname,$(RO_SONAME) -Wl,--version-script=repops/librepops.map $(ro_obj) $(LDFLAGS) -o $@
	@ln -sf $(RO_SONAME) $(BUILD)/lib/librepops.so
# The CBLAS front holds its own copy of the library, so that LD_PRELOAD needs one path only.
blas_obj := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard repops/blas/*.c))
$(BUILD)/lib/$(BLAS_SONAME): $(blas_obj) $(BUILD)/lib/librepops.a repops/blas/blas.map
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) -shared -Wl,-soname,$(BLAS_SONAME) -Wl,--version-script=repops/blas/blas.map $(blas_obj) \
	    $(BUILD)/lib/librepops.a $(LDFLAGS) -o $@
	@ln -sf $(BLAS_SONAME) $(BUILD)/lib/librepops_blas.so

# The library alone; needs no package but a C compiler. The CUDA library too if it has been built (`make cuda`), or by `make install-cuda`.
LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/repops
install: lib
	install -d $(DESTDIR)$(PREFIX)/include/repops $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR)/pkgconfig \
	    $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man3 $(DESTDIR)$(DOCDIR)
	install -m 644 repops/include/repops/*.h $(DESTDIR)$(PREFIX)/include/repops
	install -m 755 $(BUILD)/bin/repops-conform $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(BUILD)/lib/librepops.a $(DESTDIR)$(LIBDIR)
	install -m 755 $(BUILD)/lib/$(RO_SONAME) $(BUILD)/lib/$(BLAS_SONAME) $(DESTDIR)$(LIBDIR)
	ln -sf $(RO_SONAME) $(DESTDIR)$(LIBDIR)/librepops.so
	ln -sf $(BLAS_SONAME) $(DESTDIR)$(LIBDIR)/librepops_blas.so
	for pc in repops repops-blas; do \
	    sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(RO_VERSION)|' repops/$$pc.pc.in \
	        > $(DESTDIR)$(LIBDIR)/pkgconfig/$$pc.pc || exit 1; done
	install -m 644 repops/man/*.1 $(DESTDIR)$(MANDIR)/man1
	install -m 644 repops/man/*.3 $(DESTDIR)$(MANDIR)/man3
	install -m 644 repops/SPEC.md LICENSE $(DESTDIR)$(DOCDIR)
	[ ! -e $(BUILD)/lib/librepops_cuda.so.1 ] || install -m 755 $(BUILD)/lib/librepops_cuda.so.1 $(DESTDIR)$(LIBDIR)
install-cuda: cuda
	install -d $(DESTDIR)$(LIBDIR)
	install -m 755 $(BUILD)/lib/librepops_cuda.so.1 $(DESTDIR)$(LIBDIR)
# What both install, and folders that are the library's own; with the same PREFIX, DESTDIR and other folders.
uninstall:
	rm -f $(patsubst repops/include/%,$(DESTDIR)$(PREFIX)/include/%,$(wildcard repops/include/repops/*.h)) \
	    $(patsubst repops/man/%,$(DESTDIR)$(MANDIR)/man1/%,$(wildcard repops/man/*.1)) \
	    $(patsubst repops/man/%,$(DESTDIR)$(MANDIR)/man3/%,$(wildcard repops/man/*.3)) \
	    $(addprefix $(DESTDIR)$(LIBDIR)/,librepops.a $(RO_SONAME) librepops.so $(BLAS_SONAME) librepops_blas.so librepops_cuda.so.1 \
	      pkgconfig/repops.pc pkgconfig/repops-blas.pc) \
	    $(DESTDIR)$(PREFIX)/bin/repops-conform $(addprefix $(DESTDIR)$(DOCDIR)/,SPEC.md LICENSE)
	for folder in $(DESTDIR)$(PREFIX)/include/repops $(DESTDIR)$(DOCDIR); do \
	    [ ! -d $$folder ] || rmdir --ignore-fail-on-non-empty $$folder || exit 1; done
.PHONY: install-cuda uninstall

# On a GPU, with nvcc and a C compiler alone: tables on the screen, and bench/results/<device>/*.json. ARGS=--quick: two minutes of it;
# ARGS=--small: the same programs at tiny sizes on the shim, without a GPU.
test-cuda:
	@sh tests/cuda/run.sh $(BUILD) $(ARGS)
bench-cuda:
	@sh bench/cuda.sh $(BUILD) $(ARGS)
.PHONY: test-cuda bench-cuda
cuda_job := $(BUILD)/obj/tests/cuda/job.o
$(BUILD)/obj/tests/cuda/%.o: tests/cuda/%.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) -c $< -o $@
$(BUILD)/cuda/training: $(BUILD)/obj/tests/cuda/training.o $(cuda_job) $(BUILD)/lib/libverde_own.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $^ $(LDFLAGS) -o $@
$(BUILD)/cuda/%: tests/cuda/%.c $(tools_obj) $(BUILD)/obj/repops/tools/sha256.o $(BUILD)/lib/librepops.a
	$(cuda_program)
cuda-tests: lib $(addprefix $(BUILD)/cuda/,cases sgemm tree memory fused free training)
$(BUILD)/cuda/device: tests/cuda/device.cu
	@mkdir -p $(@D)
	$(Q)$(NVCC) -cudart static $< -o $@
# What both run, made where there is time for it: make cuda-kit CUDA_ARCHS=90; then, where the GPU is, BUILT=1 make bench-cuda.
cuda-kit:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/gpu cuda cuda-tests $(addprefix $(BUILD)/gpu/,bench/cuda cuda/device)
	@strip -g $(addprefix $(BUILD)/gpu/,bin/repops-conform cuda/cases cuda/sgemm cuda/tree cuda/memory cuda/fused cuda/free cuda/training bench/cuda)
	@rm -f $(BUILD)/gpu/cuda/*.d $(BUILD)/gpu/bench/*.d
.PHONY: cuda-tests cuda-kit

$(BUILD)/obj/bench/%.o: bench/%.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) -c $< -o $@
$(BUILD)/obj/bench/cuda_blas.o: bench/cuda_blas.cu
	@mkdir -p $(@D)
	@echo "  NVCC    $<"
	$(Q)$(NVCC) -I. -c $< -o $@
# The benchmark opens cuBLAS where there is one, the library never does.
$(BUILD)/bench/cuda: $(addprefix $(BUILD)/obj/bench/,cuda.o cuda_products.o cuda_streams.o cuda_steps.o process.o cuda_blas.o) \
    $(cuda_job) $(BUILD)/lib/libverde_own.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(NVCC) $^ -cudart static -Xcompiler=-pthread -ldl -o $@

# A training loop on repops alone: make example ARGS=2 (threads).
example: $(BUILD)/bin/example_trainer
	$< $(ARGS)
$(BUILD)/bin/example_trainer: models/example_trainer.c $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) -std=c11 -g $(WARN) $(OPT) -Irepops/include $(SANITIZE) $(CFLAGS) $^ $(LDFLAGS) -o $@
.PHONY: example

# Convolutions, pooling, batch norm: make bench-conv ARGS="--isa avx2 --threads 2 --torch python3";
# attention: make bench-attention with the same.
bench-conv bench-attention: bench-%: $(BUILD)/bench/%
	$< $(ARGS)
$(BUILD)/bench/%: bench/%.c $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	$(CC) $(BASE) $(OPT) $(CFLAGS) $^ $(LDFLAGS) -o $@
.PHONY: bench-conv bench-attention
TORCH_BENCHES := $(addprefix $(BUILD)/bench/,conv attention elementwise step)
$(TORCH_BENCHES): bench/process.c | $(BUILD)/bench/mkl_kernels.so
$(BUILD)/bench/mkl_kernels.so: bench/mkl_kernels.c
	@mkdir -p $(@D)
	$(CC) -std=c11 $(WARN) -O2 -fPIC -shared $< -o $@

# Speed against other libraries, those that are installed: tables, and $(BUILD)/bench/cpu.csv. One
# table by itself: make bench-cpu ARGS="--isa avx2 --threads 2 --only squares".
bench-cpu: $(BUILD)/bench/cpu_gemm
ifdef ARGS
	$< $(ARGS)
else
	@rm -f $(BUILD)/bench/cpu.csv
	$(Q)for isa in $$(sh tests/isas.sh | cut -d' ' -f2-); do for threads in 1 2; do \
	    $< --isa $$isa --threads $$threads --csv $(BUILD)/bench/cpu.csv || exit 1; \
	done; done
endif
$(BUILD)/bench/cpu_gemm: bench/cpu_gemm.c bench/peers.c bench/peers.h bench/bench.h $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) $(filter-out %.h,$^) $(LDFLAGS) -lm -o $@
.PHONY: bench-cpu

# The CBLAS front beside OpenBLAS: make bench-blas ARGS="avx2 2".
bench-blas: $(BUILD)/bench/cpu_blas $(BUILD)/lib/$(BLAS_SONAME)
	$< $(BUILD)/lib/$(BLAS_SONAME) $(ARGS)
$(BUILD)/bench/cpu_blas: LDFLAGS += -lm
.PHONY: bench-blas

# Functions of one element beside libmvec, and all operators but products beside memcpy and PyTorch:
# make bench-functions ARGS="--csv avx2"; make bench-elementwise ARGS="--isa avx2 --torch python3".
bench-functions bench-elementwise: bench-%: $(BUILD)/bench/%
	$< $(ARGS)
$(BUILD)/bench/functions: LDFLAGS += $(if $(filter x86_64,$(ARCH)),-lmvec) -lm
$(BUILD)/bench/attention $(BUILD)/bench/conv $(BUILD)/bench/elementwise: LDFLAGS += -lm
.PHONY: bench-functions bench-elementwise

# A whole training step beside PyTorch's: make bench-step ARGS="--torch python3 --profile".
bench-step: $(BUILD)/bench/step
	$< $(ARGS)
$(BUILD)/bench/step: bench/step.c bench/workload.c $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	$(CC) $(BASE) $(OPT) $(CFLAGS) $^ $(LDFLAGS) $(PKG_LIBS) -o $@
.PHONY: bench-step

# Rounding logs beside a fixed order: make bench-determinism ARGS="--model resnet50 --size full".
bench-determinism: $(BUILD)/bench/determinism
	$< $(ARGS)
$(BUILD)/bench/determinism: $(wildcard bench/determinism/*.c) bench/workload.c $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	$(CC) $(BASE) $(OPT) $(CFLAGS) $^ $(LDFLAGS) $(PKG_LIBS) -lm -o $@
.PHONY: bench-determinism

$(BUILD)/lib/libverde.a: $(vd_obj)
	@mkdir -p $(@D)
	@rm -f $@
	@echo "  AR      $@"
	$(Q)$(AR) rcs $@ $^
# Images in the format of CIFAR-10, for the resnet jobs where there is no CIFAR-10.
$(BUILD)/bin/standin: models/data/standin.c
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) $< $(LDFLAGS) -o $@
images: $(BUILD)/bin/standin
	$< 400 > models/data/stripes.bin
	$< 10000 > models/data/stripes-10000.bin
.PHONY: images

$(BUILD)/bin/verde: $(cli_obj) $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $^ $(LDFLAGS) $(PKG_LIBS) -o $@

# The main objects of the command line are linked into no test.
$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(test_support) $(tools_obj) $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(filter %.o,$^) $(filter %.a,$^) $(LDFLAGS) $(PKG_LIBS) -lcriterion -lm -o $@
# The symbol map hides the front's own functions.
$(BUILD)/tests/test_blas: $(blas_obj)
$(BUILD)/tests/test_gradients: $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/unit/gradient_*.c))
$(BUILD)/tests/planted_%: $(BUILD)/obj/tests/planted/%.o
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $^ $(LDFLAGS) -lcriterion -o $@
# The test program of plain C (tests/portable). PORTABLE_SHA=own: without OpenSSL, for machines that have none.
PORTABLE_SHA ?= openssl
portable_obj := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out tests/portable/digest.c,$(wildcard tests/portable/*.c)))
# The linker takes of the library what the program needs, and that includes no file with json in it.
portable_own := $(patsubst %.c,$(BUILD)/obj/%.o,tests/portable/digest.c repops/tools/sha256.c \
                $(addprefix verde/commit/,sha.c tensor.c tree.c proof.c record.c) \
                $(filter verde/base/% verde/graph/% verde/exec/% models/%,$(vd_src)))
portable_own := $(filter-out $(patsubst %.c,$(BUILD)/obj/%.o,$(shell grep -lE 'include.*(jansson|json)\.h' verde/exec/*.c)),$(portable_own))
$(BUILD)/lib/libverde_own.a: $(portable_own)
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^
portable_sha_own := $(BUILD)/lib/libverde_own.a
portable_sha_openssl := $(BUILD)/lib/libverde.a
$(BUILD)/tests/portable: $(portable_obj) $(portable_sha_$(PORTABLE_SHA)) $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $^ $(LDFLAGS) $(if $(filter openssl,$(PORTABLE_SHA)),$(PKG_LIBS)) -o $@
tests: $(tests) $(BUILD)/tests/portable
.PHONY: tests
.SECONDARY:
.DELETE_ON_ERROR:

# ---- packages: only `demo`, `test` and `test-asan` install anything ----

PACKAGES := gcc libc6-dev make pkg-config libssl-dev zlib1g-dev libyaml-dev libevent-dev libcurl4-openssl-dev libjansson-dev
TEST_PACKAGES := $(PACKAGES) libcriterion-dev clang
ASAN_PACKAGES := $(TEST_PACKAGES)
# For tests/system/cross.sh, which is skipped without them: about 70 MB.
CROSS_PACKAGES := qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-s390x-linux-gnu libc6-dev-s390x-cross
# Without these, the tests that use them are skipped.
OPTIONAL_PACKAGES := g++ libblas-dev python3-numpy man-db groff-base

demo:
	@sh verde/packages.sh $(PACKAGES)
	@$(MAKE) --no-print-directory -j$$(nproc) build
	@sh verde/demo.sh $(BUILD)

test:
	@sh verde/packages.sh $(TEST_PACKAGES)
	@sh verde/packages.sh $(CROSS_PACKAGES) || echo "The tests of other machines' bits will be skipped."
	@sh verde/packages.sh $(OPTIONAL_PACKAGES) || echo "Some tests will be skipped."
	@$(MAKE) --no-print-directory -j$$(nproc) build tests
	@$(MAKE) --no-print-directory run-tests

run-tests: build tests $(BUILD)/bin/example_trainer
	@sh tests/run.sh $(BUILD)

# gcc and clang at all four levels, of which `make test` has two each.
test-compilers: build
	@ALL_LEVELS=1 sh tests/run.sh $(BUILD) tests/system/bits.sh
.PHONY: test-compilers

# The CUDA kernels alone, on this CPU; `make test` has these too.
test-simt: lib $(BUILD)/bin/verde
	@sh tests/run.sh $(BUILD) tests/simt/*.sh
.PHONY: test-simt

# The same tests under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer; of free kernels those for this machine's best
# instruction set.
test-asan:
	@sh verde/packages.sh $(ASAN_PACKAGES)
	@$(MAKE) --no-print-directory -j$$(nproc) lib
	@isas=$$(sh tests/isas.sh); \
	$(MAKE) --no-print-directory -j$$(nproc) run-asan BUILD=$(BUILD)/asan OPT=-O1 \
	    PLAIN_BUILD=$(BUILD) RUN_ISAS="$$isas" FREE_ISAS=$${isas##* } \
	    SANITIZE="-g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"

run-asan: build tests $(BUILD)/bin/example_trainer $(planted)
	@sh tests/asan.sh $(BUILD)

lint:
	@sh tests/lint/layers.sh
	@sh tests/lint/fast_math.sh
	@[ ! -d $(BUILD)/obj/repops/cpu ] || sh tests/lint/symbols.sh $(BUILD)

# All 2^32 inputs of the elementary functions: an hour, not part of the tests. ARGS: names of functions; "--every 1009": some inputs.
exhaustive:
	@echo '#include <mpfr.h>' | $(CC) -E -x c - > /dev/null 2>&1 || \
	    { echo "make exhaustive needs MPFR: apt-get install libmpfr-dev" >&2; exit 1; }
	$(Q)$(MAKE) --no-print-directory $(BUILD)/tests/exhaustive_math
	$(BUILD)/tests/exhaustive_math $(ARGS)
$(BUILD)/tests/exhaustive_math: tests/exhaustive/math.c $(ISAS:%=$(BUILD)/obj/repops/tools/functions_%.o) $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(BASE) -O2 $(if $(filter x86_64,$(ARCH)),-mfma) $(CFLAGS) $^ $(LDFLAGS) -lmpfr -lm -o $@

clean:
	rm -rf $(BUILD)

format:
	clang-format -i $$(git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.cc')

-include $(wildcard $(BUILD)/simt/*.d $(BUILD)/simt/tsan/*.d $(BUILD)/cuda/*.d $(BUILD)/simt/obj/*.d $(BUILD)/simt/tsan/obj/*.d $(BUILD)/obj/repops/cuda/*.d) \
    $(wildcard $(BUILD)/simt/obj/free/*/*.d $(BUILD)/simt/tsan/obj/free/*/*.d $(BUILD)/obj/repops/cuda/free/*/*.d) $(ro_obj:.o=.d) $(conform_obj:.o=.d) $(blas_obj:.o=.d) $(vd_obj:.o=.d) $(cli_obj:.o=.d) $(wildcard $(BUILD)/obj/tests/*/*.d $(BUILD)/obj/bench/*.d)
