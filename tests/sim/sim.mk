# Simulates hundreds of thousands of disputes in memory, see tests/sim/*.h. Their signatures are hashes
# (keys.h). tests/system/sim.sh plays some of them.

sim_obj := $(patsubst %,$(BUILD)/obj/tests/sim/%.o,toy keys memo party world questions game hearing check)
sim_link = $(CC) $(filter %.o,$^) $(filter %.a,$^) $(LDFLAGS) -Wl,--wrap=vd_signature_verify $(sim_wrap) $(PKG_LIBS) -o $@
$(BUILD)/sim/%: $(BUILD)/obj/tests/sim/%.o $(sim_obj) $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(sim_link)
# The same with a deliberate bug.
$(BUILD)/sim/planted_%: $(BUILD)/obj/tests/sim/games.o $(BUILD)/obj/tests/sim/planted_%.o $(sim_obj) $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(sim_link)
$(BUILD)/sim/planted_proof: private sim_wrap := -Wl,--wrap=vd_proof_verify
$(BUILD)/sim/planted_clock: private sim_wrap := -Wl,--wrap=vd_clocks_renew
$(BUILD)/sim/planted_nonce: private sim_wrap := -Wl,--wrap=vd_minutes_read

# ARGS: "COUNT SEED" for COUNT disputes; "replay SEED" for one with its log.
sim: ## disputes in memory from seeds, of liars, networks and crashes; ARGS="100000 1"
sim: $(BUILD)/sim/exhaustive $(BUILD)/sim/lives $(BUILD)/sim/worst $(BUILD)/sim/games
	@$(if $(ARGS),,$(BUILD)/sim/exhaustive && $(BUILD)/sim/lives 60 && $(BUILD)/sim/worst)
	@$(BUILD)/sim/games $(ARGS)
.PHONY: sim
