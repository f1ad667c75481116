# Compiles the CUDA sources for a CPU, with threads as fibers in random order (tests/simt/cuda_runtime.h).

# link_whole FLAGS: links so that a program that opens the library meanwhile gets the old or the new one, never a part.
link_whole = $(Q)$(CXX) -shared -fsanitize=alignment $(1) -Wl,-Bsymbolic $^ -o $@.part && mv $@.part $@

# Slabs of convolutions (repops/cuda/image/conv_fixed.cuh) are made so small that half of the cases have several, and half none.
SIMT_FLAGS := -DRO_CONV_SLAB=16384 -DRO_CONV_EITHER -std=c++20 -g1 -O1 -fPIC -I. -Irepops/include -DRO_SECTIONS -Itests/simt -Wall -Wextra -Wno-unknown-pragmas -Wno-missing-field-initializers \
              -fvisibility=hidden $(BITS) $(if $(filter x86_64,$(ARCH)),-mfma) -fsanitize=alignment -fno-sanitize-recover=all
$(eval $(call remember,$(BUILD)/simt/flags,$(CXX) $(SIMT_FLAGS)))
simt: $(BUILD)/simt/librepops_cuda.so.1 $(addprefix $(BUILD)/simt/,cases sgemm tree memory fused fixed guard plain free shim plans) $(BUILD)/simt/shim_tsan $(BUILD)/simt/traffic.so $(BUILD)/simt/tsan/librepops_cuda.so.1 $(addprefix $(BUILD)/simt/tsan/,cases sgemm tree fused free)
$(BUILD)/simt/obj/%.o: repops/cuda/%.cu $(BUILD)/simt/flags
	@mkdir -p $(@D)
	@echo "  SIMT    $<"
	$(Q)$(CXX) $(SIMT_FLAGS) -MMD -MP -x c++ -c $< -o $@
define simt_free_rule
$(BUILD)/simt/$(1)obj/free/$(2)/%.o: repops/cuda/free/%.cu $(BUILD)/simt/flags
	@mkdir -p $$(@D)
	@echo "  SIMT    $$< ($(2)$(if $(1),$(comma) ThreadSanitizer))"
	$$(Q)$$(CXX) $$(SIMT_FLAGS) $(if $(1),-fsanitize=thread) -DRO_REAL=$(2) -DRO_IS_$(2)=1 -MMD -MP -x c++ -c $$< -o $$@
endef
comma := ,
$(foreach real,f32 f64,$(foreach tsan,no tsan/,$(eval $(call simt_free_rule,$(tsan:no=),$(real)))))
$(BUILD)/simt/obj/simt.o: tests/simt/simt.cc $(BUILD)/simt/flags
	@mkdir -p $(@D)
	@echo "  SIMT    $<"
	$(Q)$(CXX) $(SIMT_FLAGS) -MMD -MP -c $< -o $@
$(BUILD)/simt/librepops_cuda.so.1: $(cuda_src:repops/cuda/%.cu=$(BUILD)/simt/obj/%.o) $(BUILD)/simt/obj/simt.o \
    $(call cuda_free,$(BUILD)/simt/obj/free) $(BUILD)/obj/repops/src/op.o
	@echo "  LD      $@"
	$(call link_whole)
# The shim's own test, also under ThreadSanitizer: kernels are instrumented, the scheduler is not.
$(BUILD)/simt/shim: tests/simt/shim.cu $(BUILD)/simt/obj/simt.o
	@echo "  SIMT    $@"
	$(Q)$(CXX) $(SIMT_FLAGS) -MMD -MP -MF $@.d -x c++ $< -x none $(BUILD)/simt/obj/simt.o -o $@
$(BUILD)/simt/plans: tests/simt/plans.cu $(BUILD)/simt/obj/gemm/gemm_plan.o $(BUILD)/simt/obj/simt.o
	@echo "  SIMT    $@"
	$(Q)$(CXX) $(SIMT_FLAGS) -MMD -MP -MF $@.d -x c++ $< -x none $(BUILD)/simt/obj/gemm/gemm_plan.o $(BUILD)/simt/obj/simt.o -o $@
$(BUILD)/simt/obj/simt_tsan.o: tests/simt/simt.cc $(BUILD)/simt/flags
	@mkdir -p $(@D)
	@echo "  SIMT    $< (ThreadSanitizer)"
	$(Q)$(CXX) $(SIMT_FLAGS) -DSIMT_TSAN -MMD -MP -c $< -o $@
$(BUILD)/simt/shim_tsan: tests/simt/shim.cu $(BUILD)/simt/obj/simt_tsan.o
	@echo "  SIMT    $@"
	$(Q)$(CXX) $(SIMT_FLAGS) -fsanitize=thread -MMD -MP -MF $@.d -x c++ $< -x none $(BUILD)/simt/obj/simt_tsan.o -o $@
# Programs that test a device: plain C, also for machines without Criterion. Their headers are in their .d files.
define cuda_program
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(BASE) $(OPT) -Itests/unit $(CFLAGS) -MF $@.d -MT $@ $(filter %.c %.o %.a,$^) $(LDFLAGS) -lm -o $@
endef
# All kernels under ThreadSanitizer, with accesses to whole vectors. The program has the sanitizer's runtime. librepops is not instrumented,
# except its thread pool, whose atomic operations the sanitizer must see.
$(BUILD)/simt/tsan/obj/%.o: repops/cuda/%.cu $(BUILD)/simt/flags
	@mkdir -p $(@D)
	@echo "  SIMT    $< (ThreadSanitizer)"
	$(Q)$(CXX) $(SIMT_FLAGS) -fsanitize=thread -fno-tree-sra -MMD -MP -x c++ -c $< -o $@
# Free kernels in one type only: both have the same sources.
$(BUILD)/simt/tsan/librepops_cuda.so.1: $(cuda_src:repops/cuda/%.cu=$(BUILD)/simt/tsan/obj/%.o) \
    $(BUILD)/simt/tsan/obj/free/f64/free.o $(BUILD)/simt/obj/free/f32/free.o \
    $(BUILD)/simt/obj/simt_tsan.o $(BUILD)/obj/repops/src/op.o
	@echo "  LD      $@"
	$(call link_whole,-fsanitize=thread)
# The same kernels with their accesses counted, without sanitizer.
$(BUILD)/simt/obj/%_traffic.o: tests/simt/%.cc $(BUILD)/simt/flags
	@mkdir -p $(@D)
	@echo "  SIMT    $< (traffic)"
	$(Q)$(CXX) $(SIMT_FLAGS) -DSIMT_TRAFFIC -MMD -MP -c $< -o $@
$(BUILD)/simt/traffic.so: $(cuda_src:repops/cuda/%.cu=$(BUILD)/simt/tsan/obj/%.o) $(call cuda_free,$(BUILD)/simt/obj/free) \
    $(BUILD)/simt/obj/simt_traffic.o $(BUILD)/simt/obj/traffic_traffic.o $(BUILD)/obj/repops/src/op.o
	@echo "  LD      $@"
	$(call link_whole)
$(BUILD)/simt/tsan/obj/pool.o: repops/src/pool.c $(FLAGS)
	@mkdir -p $(@D)
	@echo "  CC      $< (ThreadSanitizer)"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) -fsanitize=thread -MMD -MP -c $< -o $@
$(BUILD)/simt/tsan/%: tests/cuda/%.c $(op_cases) $(tools_obj) $(BUILD)/obj/repops/tools/sha256.o $(BUILD)/simt/tsan/obj/pool.o $(BUILD)/lib/librepops.a
	$(cuda_program) -fsanitize=thread
$(BUILD)/simt/%: tests/cuda/%.c $(op_cases) $(tools_obj) $(BUILD)/obj/repops/tools/sha256.o $(BUILD)/lib/librepops.a
	$(cuda_program)
.PHONY: simt
