# The emulator of PTX (tests/ptx/ptx.h), and librepops_cuda linked with it in place of CUDA's runtime.

# -fno-strict-aliasing: registers are words that hold any type.
PTX_FLAGS := -std=c++20 -g1 -O3 -fPIC -I. -Wall -Wextra -fvisibility=hidden -fno-strict-aliasing $(BITS) \
             $(if $(filter x86_64,$(ARCH)),-mavx2 -mfma)
$(eval $(call remember,$(BUILD)/ptx/flags,$(CXX) $(PTX_FLAGS)))
ptx_obj := $(patsubst %,$(BUILD)/ptx/obj/%.o,statements module parse mnemonics transfers memory shared warp block barriers stages products)
ptx: $(BUILD)/ptx/librepops_cuda.so.1 cuda-tests
$(BUILD)/ptx/obj/%.o: tests/ptx/%.cc $(BUILD)/ptx/flags
	@mkdir -p $(@D)
	@echo "  CXX     $<"
	$(Q)$(CXX) $(PTX_FLAGS) -MMD -MP -c $< -o $@
# nvcc knows where CUDA's headers are.
$(BUILD)/ptx/obj/runtime.o: tests/ptx/runtime.cc
	@mkdir -p $(@D)
	@echo "  NVCC    $<"
	$(Q)$(NVCC) -std=c++20 -O2 -g -I. -Xcompiler=-fPIC,-fvisibility=hidden,-Wall -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@
$(BUILD)/ptx/planted $(BUILD)/ptx/planted_products: $(BUILD)/ptx/planted%: $(BUILD)/ptx/obj/planted%.o $(ptx_obj)
	@echo "  LD      $@"
	$(Q)$(CXX) $^ -o $@
$(BUILD)/ptx/librepops_cuda.so.1: $(cuda_src:%.cu=$(BUILD)/obj/%.o) $(call cuda_free,$(BUILD)/obj/repops/cuda/free) \
    $(BUILD)/obj/repops/src/op.o $(BUILD)/ptx/obj/runtime.o $(ptx_obj)
	@echo "  LD      $@"
	$(Q)$(CXX) -shared -Wl,-Bsymbolic,--no-undefined $^ -o $@
.PHONY: ptx
# Products whose inner loop is unrolled differently, for tests/full/ptx.sh.
define unroll_rule
$(BUILD)/unroll$(1)/%.compute_$(2).ptx: repops/cuda/%.cu $(wildcard repops/cuda/*.cuh repops/cuda/*/*.cuh)
	@mkdir -p $$(@D)
	@echo "  NVCC    $$< ($(1) steps)"
	$$(Q)$$(NVCC) $$(NVFLAGS) -DRO_GEMM_UNROLL=$(1) -arch=compute_$(2) -ptx $$< -o $$@
endef
$(foreach steps,16 8 4,$(foreach arch,75 80,$(eval $(call unroll_rule,$(steps),$(arch)))))
