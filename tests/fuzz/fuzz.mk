# Fuzzing of parsers: `make test` replays kept inputs, `make fuzz` makes new ones.

fuzz_targets := $(filter-out fuzz replay,$(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c)))
# Empty for libFuzzer, which has its own main.
FUZZ_MAIN ?= $(BUILD)/obj/tests/fuzz/replay.o
$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/obj/tests/fuzz/fuzz.o $(FUZZ_MAIN) $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(filter %.o,$^) $(filter %.a,$^) $(LDFLAGS) $(PKG_LIBS) -o $@
fuzz-programs: $(fuzz_targets:%=$(BUILD)/fuzz/%)
.PHONY: fuzz-programs

# Kernels parse nothing, so the plain build's are used.
SECONDS ?= 60
fuzz: ## new inputs for each parser, by clang's libFuzzer; SECONDS=600 for each, T="job note": these alone
	@$(MAKE) --no-print-directory -j$$(nproc) lib
	@$(MAKE) --no-print-directory -j$$(nproc) fuzz-programs BUILD=$(BUILD)/fuzzing CC=clang OPT=-O1 FUZZ_MAIN= \
	    PLAIN_BUILD=$(BUILD) RUN_ISAS=none FREE_ISAS=none \
	    LDFLAGS="-fsanitize=fuzzer,address,undefined -pthread -ldl" \
	    SANITIZE="-g1 -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all -fno-omit-frame-pointer"
	@sh tests/fuzz/run.sh $(BUILD)/fuzzing $(SECONDS) $(or $(T),$(fuzz_targets))
.PHONY: fuzz
