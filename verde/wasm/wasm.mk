# The verifier for browsers: build/verify.html. It needs clang, lld, wasi-libc, libclang-rt-14-dev-wasm32 and, once, the network
# (sources.sh). All flags but OPT are fixed, so that the same sources give the same file.

WASM := $(BUILD)/wasm
WASM_CC ?= clang
WASM_AR ?= llvm-ar-14
WASM_PACKAGES := clang lld wasi-libc libclang-rt-14-dev-wasm32 openssl

verifier: ## verify.html, the verifier for browsers, in BUILD/share/verde
	@sh verde/packages.sh $(WASM_PACKAGES)
	@$(MAKE) --no-print-directory $(BUILD)/share/verde/verify.html $(WASM)/reference.wasm
	@sha256sum $(BUILD)/share/verde/verify.html
.PHONY: verifier
JANSSON := $(WASM)/sources/jansson/src
SODIUM := $(WASM)/sources/libsodium/src/libsodium
ZLIB := $(WASM)/sources/zlib
WASM_FLAGS := --target=wasm32-wasi -std=c11 -O2 -ffunction-sections -fdata-sections -D_GNU_SOURCE -DRO_SECTIONS -I. -Irepops/include \
    -Iverde/wasm/include -I$(JANSSON) -I$(ZLIB) -D_WASI_EMULATED_MMAN $(WARN) $(BITS) -ffile-prefix-map=$(WASM)/= -MMD -MP

# The source files that deciding a verdict needs. If one is missing, the linker names the function.
wasm_in = $(foreach name,$(2),$(1)/$(name).c)
wasm_src := $(wildcard repops/ref/*.c repops/src/infer*.c) $(call wasm_in,repops/src,emit op) \
    $(call wasm_in,verde/base,buf cursor error order text) \
    $(call wasm_in,verde/commit,bytes collection json note note_open proof public_key record sha tensor tree) \
    $(call wasm_in,verde/exec,fold items leaf state) \
    $(call wasm_in,verde/graph,decode_graph encode encode_graph graph known nodes parts range validate validate_graph) \
    $(call wasm_in,verde/log,bits calls format note possible program root section section_proof sums symbols thresholds) \
    $(call wasm_in,verde/protocol,answer_most audit_message challenge collection crumb descent element fields fold inputs judgement message \
      next node outcome pace phases provider question referee rounding said statement steps told tournament tournament_outcome \
      tournament_pairs verdict_items verdict_verify) verde/wasm/libsodium.c verde/wasm/alone.c
wasm_jansson := dump error hashtable load memory pack_unpack strbuffer strconv utf value
wasm_sodium := crypto_core/ed25519/ref10/ed25519_ref10 crypto_hash/sha256/cp/hash_sha256_cp crypto_hash/sha512/cp/hash_sha512_cp \
    crypto_sign/ed25519/ref10/open crypto_sign/ed25519/ref10/sign crypto_verify/sodium/verify
wasm_zlib := adler32 crc32 inffast inflate inftrees zutil
wasm_obj := $(wasm_src:%.c=$(WASM)/obj/%.o) $(wasm_jansson:%=$(WASM)/obj/jansson/%.o) $(wasm_sodium:%=$(WASM)/obj/libsodium/%.o) \
    $(wasm_zlib:%=$(WASM)/obj/zlib/%.o)

$(WASM)/sources/done: verde/wasm/sources.sh
	@mkdir -p $(WASM)
	@echo "  FETCH   sources of jansson, libsodium and zlib"
	$(Q)sh $< $(WASM)/sources && touch $@
$(wasm_obj) $(WASM)/obj/verde/wasm/verify.o: | $(WASM)/sources/done

$(wasm_jansson:%=$(WASM)/obj/jansson/%.o): $(WASM)/obj/jansson/%.o: verde/wasm/wasm.mk
	@mkdir -p $(@D)
	@echo "  WASM    jansson/$*.c"
	$(Q)$(WASM_CC) $(WASM_FLAGS) -DHAVE_CONFIG_H -w -c $(JANSSON)/$*.c -o $@
$(wasm_zlib:%=$(WASM)/obj/zlib/%.o): $(WASM)/obj/zlib/%.o: verde/wasm/wasm.mk
	@mkdir -p $(@D)
	@echo "  WASM    zlib/$*.c"
	$(Q)$(WASM_CC) $(WASM_FLAGS) -w -c $(ZLIB)/$*.c -o $@
$(wasm_sodium:%=$(WASM)/obj/libsodium/%.o): $(WASM)/obj/libsodium/%.o: verde/wasm/wasm.mk
	@mkdir -p $(@D)
	@echo "  WASM    libsodium/$*.c"
	$(Q)$(WASM_CC) $(WASM_FLAGS) -I$(SODIUM)/include/sodium -w -c $(SODIUM)/$*.c -o $@
$(WASM)/obj/verde/wasm/libsodium.o: WASM_FLAGS += -isystem $(SODIUM)/include -isystem $(SODIUM)/include/sodium
$(WASM)/obj/repops/src/op.o: WASM_FLAGS += -DRO_INTERFACE=0
$(WASM)/obj/%.o: %.c verde/wasm/wasm.mk
	@mkdir -p $(@D)
	@echo "  WASM    $<"
	$(Q)$(WASM_CC) $(WASM_FLAGS) -c $< -o $@

$(WASM)/verde.a: $(wasm_obj)
	@rm -f $@
	$(Q)$(WASM_AR) rcs $@ $^
# The stack has the lowest addresses, so an overflow traps instead of overwriting data.
$(WASM)/verify.wasm: $(WASM)/obj/verde/wasm/verify.o $(WASM)/verde.a
	@echo "  LD      $@"
	$(Q)$(wasm_link)
$(BUILD)/share/verde/verify.html: $(WASM)/verify.wasm verde/base/page.css $(addprefix verde/wasm/,page.sh page.js worker.js)
	@mkdir -p $(@D)
	@echo "  PAGE    $@"
	$(Q)sh verde/wasm/page.sh $< verde/base/page.css $(RO_VERSION) $(WASM)/sources > $@
wasm_link = $(WASM_CC) --target=wasm32-wasi -mexec-model=reactor $^ -o $@ \
    -Wl,--gc-sections,--strip-all,--stack-first,-z,stack-size=4194304,--max-memory=4294967296

-include $(wasm_obj:.o=.d) $(WASM)/obj/verde/wasm/verify.d

# Computes the golden table by the reference kernels, for tests/full/pages_browser.sh.
reference_obj := $(patsubst %,$(WASM)/obj/%.o,tests/wasm/reference $(addprefix repops/tools/,golden functions sha256) \
    $(patsubst %.c,%,$(wildcard repops/ref/*.c repops/src/infer*.c) repops/src/op.c repops/src/emit.c))
$(WASM)/obj/repops/tools/functions.o: WASM_FLAGS += -DRO_ISA=scalar -DRO_ISA_scalar=1
$(WASM)/reference.wasm: $(reference_obj)
	@echo "  LD      $@"
	$(Q)$(wasm_link)
