# RepOps and Verde. `make build`, `make demo` and `make test` install what is missing (Debian) and build, the last two run;
# `make lib` needs only a C compiler. See README.md.

.DEFAULT_GOAL := all
# EXPERIMENTAL=1: programs of this build's own may have experimental operators (SPEC.md section 15), if operators.def has any.
EXPERIMENTAL ?=
BUILD ?= build$(if $(EXPERIMENTAL),/experimental)
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
BASE := -std=c11 -g -fPIC -D_GNU_SOURCE -I. -Irepops/include $(WARN) $(BITS) $(SANITIZE) -pthread -MMD -MP \
        -DRO_SECTIONS $(if $(EXPERIMENTAL),-DRO_EXPERIMENTAL)
# Only what the symbol maps name is for users; under sanitizers unit tests reach the rest in a shared library (tests/tests.mk).
HIDDEN := $(if $(SANITIZE),,-fvisibility=hidden)
# Before glibc 2.34, dlopen was in a library of its own. A make that this one starts has it all in LDFLAGS, if that is of the environment.
LDFLAGS := $(LDFLAGS) $(if $(filter -ldl,$(LDFLAGS)),,$(SANITIZE) -pthread -ldl)

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
ro_cpu := $(wildcard repops/cpu/*.c repops/cpu/*/*.c)
ro_free := $(wildcard repops/free/*.c)
# Builds that compare compilers, or look for errors, compile kernels for RUN_ISAS alone, those that the machine runs. Free kernels
# promise no bits, and are many: FREE_ISAS. The others come from PLAIN_BUILD.
PLAIN_BUILD ?= $(BUILD)
RUN_ISAS ?= $(ISAS)
FREE_ISAS ?= $(if $(filter $(BUILD),$(PLAIN_BUILD)),$(ISAS))
cpu_build = $(if $(filter $(1),$(RUN_ISAS)),$(BUILD),$(PLAIN_BUILD))
free_build = $(if $(filter $(1),$(FREE_ISAS)),$(BUILD),$(PLAIN_BUILD))
# Free kernels are half of all there is to compile, and the demo runs none: it is linked without them (repops/src/absent).
ro_core_obj := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out repops/src/free_kernels.c,$(ro_src))) \
               $(foreach isa,$(ISAS),$(ro_cpu:repops/cpu/%.c=$(call cpu_build,$(isa))/obj/repops/cpu/$(isa)/%.o))
# NO_FREE=1: the library is without them too, for a look at bits alone.
NO_FREE ?=
free_obj := $(BUILD)/obj/repops/src/free_kernels.o \
          $(foreach isa,$(ISAS),$(foreach real,f32 f64,$(ro_free:repops/free/%.c=$(call free_build,$(isa))/obj/repops/free/$(isa)_$(real)/%.o)))
ro_obj := $(ro_core_obj) $(if $(NO_FREE),$(BUILD)/obj/repops/src/absent/free_kernels.o,$(free_obj))
vd_src := $(wildcard verde/base/*.c verde/graph/*.c verde/commit/*.c verde/weights/*.c verde/log/*.c verde/exec/*.c verde/team/*.c verde/protocol/*.c \
          verde/page/*.c verde/net/*.c verde/job/*.c verde/delivery/*.c verde/provide/*.c verde/tell/*.c verde/load/*.c verde/run/*.c verde/serve/*.c verde/client/*.c verde/audit/*.c verde/delegate/*.c models/*.c)
cli_src := $(wildcard verde/cli/*.c)
vd_obj := $(vd_src:%.c=$(BUILD)/obj/%.o)
cli_obj := $(cli_src:%.c=$(BUILD)/obj/%.o)
op_cases := $(BUILD)/obj/tests/support/op_cases.o
test_support := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/support/*.c))
planted := $(patsubst tests/planted/%.c,$(BUILD)/tests/planted_%,$(wildcard tests/planted/*.c))
tests := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c))

# remember FILE,TEXT: FILE holds TEXT without its quotes. It is written when it holds another one, so what depends on it is made
# again. (GNU make reads files from version 4.2 on.)
unquoted = $(subst ",,$(subst ',,$(1)))
define remember
ifneq "$$(file < $(1))" "$(call unquoted,$(2))"
$(1): FORCE
endif
$(1):
	@mkdir -p $$(@D)
	@printf '%s\n' '$(call unquoted,$(2))' > $$@
endef
FORCE:
.PHONY: FORCE
# Every object depends on the compiler and its flags. What is made of objects depends on the list of them, too: a source that was
# taken away leaves nothing that is newer.
FLAGS := $(BUILD)/flags
$(eval $(call remember,$(FLAGS),$(strip $(CC) $(shell $(CC) --version 2> /dev/null | head -n 1) $(BASE) $(OPT) $(KERNEL_OPT) \
    $(foreach isa,$(ISAS),$(ISA_$(isa))) $(CFLAGS) $(LDFLAGS))))
$(eval $(call remember,$(BUILD)/repops.list,$(ro_obj)))
$(eval $(call remember,$(BUILD)/verde.list,$(vd_obj)))
$(eval $(call remember,$(BUILD)/cli.list,$(cli_obj)))
$(eval $(call remember,$(BUILD)/tests.list,$(test_support)))

# Recursive (=), read only when a verde target is built: after packages were installed.
PKGS := openssl sqlite3 zlib yaml-0.1 libevent libevent_openssl libevent_pthreads libcurl jansson
PKG_CFLAGS = $(eval PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null))$(PKG_CFLAGS)
PKG_LIBS = $(eval PKG_LIBS := $(shell pkg-config --libs $(PKGS)) -lm)$(PKG_LIBS)

.PHONY: all build programs lib install demo test run-tests test-asan run-asan lint exhaustive clean format

# with_progress TARGETS: makes them, a process for each core if nobody said -j. MAKE tells verde/progress.sh which make to run.
with_progress = MAKE="$(MAKE)" sh verde/progress.sh $(if $(filter -j%,$(MAKEFLAGS)),,-j$$(nproc)) BUILD=$(BUILD) $(1)

all: build
build: ## install what is missing, build the library and the command: 0.2 GB
# Beside other goals it makes its files in this process: two would write the same files at the same time.
ifneq ($(word 2,$(MAKECMDGOALS)),)
build: programs
else
build:
	@sh verde/packages.sh $(PACKAGES)
	+@$(call with_progress,programs)
endif

help: ## this list
	@awk -F ' ## ' '/^[a-z][a-z-]*:.* ## / { sub(/:.*/, "", $$1); printf "  make %-18s %s\n", $$1, $$2 }' \
	    Makefile $(filter %.mk,$(MAKEFILE_LIST))
	@echo; echo "V=1 shows the commands; BUILD=folder builds elsewhere; PREFIX=folder installs there; ARGS=... goes to a benchmark."
.PHONY: help

operators: ## repops/operators.h and the table in SPEC.md, from operators.def
	@sh tests/lint/operators.sh --write
.PHONY: operators

# What other targets depend on.
programs: lib $(BUILD)/bin/verde $(BUILD)/bin/standin
lib: ## the library alone: needs a C compiler only
lib: $(BUILD)/lib/librepops.a $(BUILD)/lib/$(RO_SONAME) $(BUILD)/lib/$(BLAS_SONAME) $(BUILD)/bin/repops-conform

# Structs pass between librepops and librepops_cuda: each tells the other which headers it was built from (device.h).
interface := $(wildcard repops/include/repops/*.h repops/src/*.h repops/src/*.def)
$(BUILD)/obj/repops/src/op.o: $(interface)
$(BUILD)/obj/repops/src/op.o: override CFLAGS += -DRO_INTERFACE=$(shell cat $(interface) | cksum | cut -d' ' -f1)
$(BUILD)/obj/repops/src/%.o: repops/src/%.c $(FLAGS)
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(KERNEL_OPT) $(HIDDEN) $(CFLAGS) -c $< -o $@
$(BUILD)/obj/repops/blas/%.o: repops/blas/%.c $(FLAGS)
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) $(HIDDEN) $(CFLAGS) -c $< -o $@
$(BUILD)/obj/repops/ref/%.o: repops/ref/%.c $(FLAGS)
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) $(HIDDEN) $(CFLAGS) -c $< -o $@

$(BUILD)/obj/repops/tools/%.o: repops/tools/%.c $(FLAGS)
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) -I$(BUILD)/gen $(CFLAGS) -c $< -o $@

# Each kernel source is compiled once per instruction set, under other names (repops/cpu/isa.h). -g1: where the compiler
# keeps each variable takes it a third of the time.
define isa_rule
$(BUILD)/obj/repops/cpu/$(1)/%.o: repops/cpu/%.c $(FLAGS)
	@mkdir -p $$(@D)
	@echo "  CC      $$< ($(1))"
	$$(Q)$$(CC) $$(BASE) -g1 $$(KERNEL_OPT) $$(ISA_$(1)) -DRO_ISA=$(1) -DRO_ISA_$(1)=1 $(HIDDEN) $$(CFLAGS) -c $$< -o $$@
endef
$(foreach isa,$(ISAS),$(eval $(call isa_rule,$(isa))))
# Instructions that the file asks the machine for before it runs them.
$(BUILD)/obj/repops/cpu/neon/gemm/fixed_dots.o: private ISA_neon += -march=armv8.2-a+dotprod
# What describes a product is stored field by field: a vector load of several would wait for the stores, which small
# products notice.
$(foreach isa,$(ISAS),$(patsubst %,$(BUILD)/obj/repops/cpu/$(isa)/%.o,gemm/gemm_blocks gemm/gemm_small gemm/gemm_sweep gemm/gemm_windowed gemm/products)): \
  private BASE += -fno-tree-slp-vectorize
# Free kernels once more for each type that they compute in (repops/free/kernel.h).
define free_rule
$(BUILD)/obj/repops/free/$(1)_$(2)/%.o: repops/free/%.c $(FLAGS)
	@mkdir -p $$(@D)
	@echo "  CC      $$< ($(1), $(2))"
	$$(Q)$$(CC) $$(BASE) -g1 $$(KERNEL_OPT) $$(ISA_$(1)) -DRO_ISA=$(1) -DRO_ISA_$(1)=1 -DRO_REAL=$(2) -DRO_IS_$(2)=1 $(HIDDEN) \
	  $$(CFLAGS) -c $$< -o $$@
endef
$(foreach isa,$(ISAS),$(foreach real,f32 f64,$(eval $(call free_rule,$(isa),$(real)))))

# repops-conform: the golden files are compiled in, the elementary functions once per instruction set.
conform_obj := $(patsubst %,$(BUILD)/obj/repops/tools/%.o,conform report golden product fused fused_functions fused_optimizers fused_layers bounded case_run sha256 $(ISAS:%=functions_%))
define functions_rule
$(BUILD)/obj/repops/tools/functions_$(1).o: repops/tools/functions.c $(FLAGS)
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
tools_obj := $(patsubst %,$(BUILD)/obj/repops/tools/%.o,golden product fused fused_functions fused_optimizers fused_layers bounded case_run)

include repops/cuda/cuda.mk
include verde/mpi/mpi.mk
include tests/simt/simt.mk
include tests/ptx/ptx.mk

$(BUILD)/obj/verde/%.o: verde/%.c $(FLAGS)
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) $(PKG_CFLAGS) $(CFLAGS) -c $< -o $@
# Checksums of every tensor that is logged: vectorised like a kernel.
$(BUILD)/obj/verde/log/sums.o: OPT := $(KERNEL_OPT)
# The style sheet of all pages, as a string.
$(BUILD)/gen/page_css.h: verde/base/page.css
	@mkdir -p $(@D)
	@sed -e 's/["\\]/\\&/g' -e 's/.*/"&\\n"/' $< > $@
$(BUILD)/obj/verde/base/html.o: $(BUILD)/gen/page_css.h
$(BUILD)/obj/verde/base/html.o: BASE += -I$(BUILD)/gen
$(BUILD)/obj/models/%.o: models/%.c $(FLAGS)
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) -c $< -o $@

$(BUILD)/lib/librepops.a: $(ro_obj) $(BUILD)/repops.list
	@mkdir -p $(@D)
	@rm -f $@
	@echo "  AR      $@"
	$(Q)$(AR) rcs $@ $(ro_obj)
$(BUILD)/lib/$(RO_SONAME): $(ro_obj) repops/librepops.map $(BUILD)/repops.list
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

# install-lib: the library alone, which needs no package but a C compiler; the CUDA library too if it has been built (`make cuda`),
# or by `make install-cuda`. install: the command `verde` too, with its manual pages, documents, example jobs, the completion
# for bash and a unit for systemd.
LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/repops
VERDE_DOCDIR ?= $(PREFIX)/share/doc/verde
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
SYSTEMDDIR ?= $(PREFIX)/lib/systemd/system
VERDE_DOCS := verde/PROTOCOL.md verde/THREATS.md CHANGELOG.md LICENSE $(filter-out docs/adding-an-operator.md,$(wildcard docs/*.md))
VERDE_TUTORIALS := $(wildcard docs/tutorials/*.md)
# Example jobs whose data is in the project, and that data: relative to each other as in models.
VERDE_DATADIR ?= $(PREFIX)/share/verde
VERDE_JOBS := $(shell grep -l project.txt models/jobs/*.yaml)
install-lib: ## the library alone
install-lib: lib
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
	[ ! -e $(BUILD)/lib/libverde_mpi.so.1 ] || install -m 755 $(BUILD)/lib/libverde_mpi.so.1 $(DESTDIR)$(LIBDIR)
install: ## the library, verde, manual pages and completion, into PREFIX
install: install-lib $(BUILD)/bin/verde
	install -d $(addprefix $(DESTDIR),$(PREFIX)/bin $(MANDIR)/man1 $(VERDE_DOCDIR)/tutorials $(VERDE_DATADIR)/jobs $(VERDE_DATADIR)/data \
	    $(COMPLETIONDIR) $(SYSTEMDDIR))
	install -m 755 $(BUILD)/bin/verde $(DESTDIR)$(PREFIX)/bin
	sh verde/man/pages.sh $(BUILD)/bin/verde $(BUILD)/man $(VERDE_DOCDIR) $(VERDE_DATADIR)
	install -m 644 $(BUILD)/man/*.1 $(DESTDIR)$(MANDIR)/man1
	install -m 644 $(VERDE_DOCS) $(DESTDIR)$(VERDE_DOCDIR)
	install -m 644 $(VERDE_TUTORIALS) $(DESTDIR)$(VERDE_DOCDIR)/tutorials
	install -m 644 $(VERDE_JOBS) $(DESTDIR)$(VERDE_DATADIR)/jobs
	[ ! -e $(BUILD)/share/verde/verify.html ] || install -m 644 $(BUILD)/share/verde/verify.html $(DESTDIR)$(VERDE_DATADIR)
	install -m 644 models/data/project.txt $(DESTDIR)$(VERDE_DATADIR)/data
	sed 's|/usr/local/bin/|$(PREFIX)/bin/|' verde/systemd/verde-provide.service > $(BUILD)/verde-provide.service
	install -m 644 $(BUILD)/verde-provide.service $(DESTDIR)$(SYSTEMDDIR)
	install -m 644 verde/man/completion.bash $(DESTDIR)$(COMPLETIONDIR)/verde
install-cuda: cuda
	install -d $(DESTDIR)$(LIBDIR)
	install -m 755 $(BUILD)/lib/librepops_cuda.so.1 $(DESTDIR)$(LIBDIR)
# What both install, and folders that are the library's own; with the same PREFIX, DESTDIR and other folders.
uninstall: ## take away what install and install-lib put there
	rm -f $(patsubst repops/include/%,$(DESTDIR)$(PREFIX)/include/%,$(wildcard repops/include/repops/*.h)) \
	    $(patsubst repops/man/%,$(DESTDIR)$(MANDIR)/man1/%,$(wildcard repops/man/*.1)) \
	    $(patsubst repops/man/%,$(DESTDIR)$(MANDIR)/man3/%,$(wildcard repops/man/*.3)) \
	    $(addprefix $(DESTDIR)$(LIBDIR)/,librepops.a $(RO_SONAME) librepops.so $(BLAS_SONAME) librepops_blas.so librepops_cuda.so.1 libverde_mpi.so.1 \
	      pkgconfig/repops.pc pkgconfig/repops-blas.pc) \
	    $(addprefix $(DESTDIR)$(PREFIX)/bin/,repops-conform verde) $(addprefix $(DESTDIR)$(DOCDIR)/,SPEC.md LICENSE) \
	    $(DESTDIR)$(MANDIR)/man1/verde.1 $(DESTDIR)$(MANDIR)/man1/verde-*.1 $(DESTDIR)$(COMPLETIONDIR)/verde \
	    $(DESTDIR)$(SYSTEMDDIR)/verde-provide.service \
	    $(addprefix $(DESTDIR)$(VERDE_DOCDIR)/,$(notdir $(VERDE_DOCS)) $(VERDE_TUTORIALS:docs/%=%)) \
	    $(addprefix $(DESTDIR)$(VERDE_DATADIR)/jobs/,$(notdir $(VERDE_JOBS))) $(DESTDIR)$(VERDE_DATADIR)/data/project.txt \
	    $(DESTDIR)$(VERDE_DATADIR)/verify.html
	for folder in $(addprefix $(DESTDIR),$(PREFIX)/include/repops $(DOCDIR) $(VERDE_DOCDIR)/tutorials $(VERDE_DOCDIR) $(VERDE_DATADIR)/jobs $(VERDE_DATADIR)/data \
	    $(VERDE_DATADIR)); do \
	    [ ! -d $$folder ] || rmdir --ignore-fail-on-non-empty $$folder || exit 1; done
.PHONY: install-lib install-cuda uninstall

# Training on repops alone: make example ARGS=2 (threads).
example_programs := $(BUILD)/examples/trainer $(BUILD)/examples/gpt2
example: ## two training loops on the library alone
example: $(example_programs)
	$(BUILD)/examples/trainer $(ARGS)
	$(BUILD)/examples/gpt2 $(ARGS)
$(BUILD)/examples/%: examples/%.c $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) -std=c11 -g $(WARN) $(OPT) -Irepops/include $(SANITIZE) $(CFLAGS) $^ $(LDFLAGS) -o $@
.PHONY: example

$(BUILD)/lib/libverde.a: $(vd_obj) $(BUILD)/verde.list
	@mkdir -p $(@D)
	@rm -f $@
	@echo "  AR      $@"
	$(Q)$(AR) rcs $@ $(vd_obj)
# Images in the format of CIFAR-10, for the resnet jobs where there is no CIFAR-10.
$(BUILD)/bin/standin: models/data/standin.c $(FLAGS)
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) $< $(LDFLAGS) -o $@
images: ## stand-ins for CIFAR-10
images: $(BUILD)/bin/standin
	$< 400 > models/data/stripes.bin
	$< 10000 > models/data/stripes-10000.bin
.PHONY: images

verde_link = $(CC) $(filter %.o,$^) $(filter %.a,$^) $(LDFLAGS) $(PKG_LIBS) -o $@
$(BUILD)/bin/verde: $(cli_obj) $(BUILD)/cli.list $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(verde_link)

include verde/wasm/wasm.mk
include tests/tests.mk
include tests/fuzz/fuzz.mk
include tests/sim/sim.mk
include tests/graphs/graphs.mk
include python/python.mk
include bench/bench.mk
include debian/release/release.mk
# Make would delete objects that only a pattern names. (.SECONDARY keeps them too, but then make does not miss one that is gone.)
.PRECIOUS: $(BUILD)/obj/tests/%.o $(BUILD)/obj/tests/cuda/%.o $(BUILD)/obj/bench/%.o
.DELETE_ON_ERROR:

# ---- packages: only `build`, `demo`, and the targets that test install anything ----

PACKAGES := gcc libc6-dev make pkg-config libssl-dev zlib1g-dev libyaml-dev libevent-dev libcurl4-openssl-dev libjansson-dev libsqlite3-dev
TEST_PACKAGES := $(PACKAGES) libcriterion-dev clang
ASAN_PACKAGES := $(TEST_PACKAGES)
# For tests/system/cross.sh, which is skipped without them: about 70 MB.
CROSS_PACKAGES := qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-s390x-linux-gnu libc6-dev-s390x-cross
# Without these, the tests that use them are skipped.
OPTIONAL_PACKAGES := g++ cmake libblas-dev python3-numpy python3-cryptography man-db groff-base openmpi-bin libopenmpi-dev mpich libmpich-dev

demo: ## install what is missing, build, delegate, dispute, convict
	@sh verde/packages.sh $(PACKAGES)
	+@$(call with_progress,$(BUILD)/demo/verde)
	@sh verde/demo.sh $(BUILD)/demo
$(BUILD)/demo/librepops.a: $(ro_core_obj) $(BUILD)/obj/repops/src/absent/free_kernels.o $(BUILD)/repops.list
	@mkdir -p $(@D)
	@rm -f $@
	@echo "  AR      $@"
	$(Q)$(AR) rcs $@ $(filter %.o,$^)
$(BUILD)/demo/verde: $(cli_obj) $(BUILD)/cli.list $(BUILD)/lib/libverde.a $(BUILD)/demo/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(verde_link)

SITE_PACKAGES := mkdocs python3 xz-utils
site: ## the documents as a site with search, in BUILD/site
	@sh verde/packages.sh $(SITE_PACKAGES)
	@$(MAKE) --no-print-directory $(BUILD)/bin/verde
	@python3 docs/site/make.py $(BUILD)/bin/verde $(BUILD)/site
.PHONY: site

clean: ## remove BUILD
	rm -rf $(BUILD)

format: ## clang-format on every source
	clang-format -i $$(git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.cc')

# The compilers' lists of headers, of everything that was built.
-include $(ro_obj:.o=.d) $(conform_obj:.o=.d) $(blas_obj:.o=.d) $(vd_obj:.o=.d) $(cli_obj:.o=.d) \
    $(wildcard $(BUILD)/obj/tests/*/*.d $(BUILD)/obj/bench/*.d $(BUILD)/cuda/*.d $(BUILD)/simt/*.d $(BUILD)/simt/tsan/*.d $(BUILD)/ptx/obj/*.d) \
    $(foreach obj,$(BUILD)/obj/repops/cuda $(BUILD)/simt/obj $(BUILD)/simt/tsan/obj,$(wildcard $(obj)/*.d $(obj)/*/*.d $(obj)/*/*/*.d))
