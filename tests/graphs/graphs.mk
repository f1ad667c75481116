# Tests of programs with randomly changed graphs, fused and node by node: see tests/graphs/graphs.c.

graphs_obj := $(patsubst %,$(BUILD)/obj/tests/%.o,support/graph_edit $(addprefix graphs/,graphs counts mutate_values mutate_wires together values ways))
# Links without OpenSSL and jansson, for other machines and those with a GPU.
graphs_link = $(CC) $^ $(LDFLAGS) $(graphs_wrap) -lm -o $@
$(BUILD)/graphs/graphs: $(graphs_obj) $(BUILD)/lib/libverde_own.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(graphs_link)
# The same with a deliberate bug.
$(BUILD)/graphs/planted_%: $(BUILD)/obj/tests/graphs/planted_%.o $(graphs_obj) $(BUILD)/lib/libverde_own.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(graphs_link)
$(BUILD)/graphs/planted_reader: private graphs_wrap := -Wl,--wrap=vd_find_reader
$(BUILD)/graphs/planted_levels: private graphs_wrap := -Wl,--wrap=vd_join_levels
$(BUILD)/graphs/planted_stop: private graphs_wrap := -Wl,--wrap=vd_batch_check_stop
$(BUILD)/graphs/planted_slice: private graphs_wrap := -Wl,--wrap=vd_alias_bind
