# The CUDA backend: a library of its own, for every architecture that the toolkit compiles for.

# Each compilation keeps its report and its PTX: tests/lint/ptx.sh checks both.

# NVCC may have options; nvcc takes its host compiler from NVCC_CCBIN, too. nvcc is searched for when it is first needed.
ifeq ($(origin NVCC),undefined)
NVCC = $(eval NVCC := $(or $(shell sh repops/cuda/find_nvcc 2> /dev/null),nvcc))$(NVCC)
endif
cuda_src := $(filter-out repops/cuda/free/%,$(wildcard repops/cuda/*.cu repops/cuda/*/*.cu))
cuda_free = $(foreach real,f32 f64,$(1)/$(real)/free.o)
# Every architecture has code of its own, or runs that of an older one of its major version. Sources know two kinds: sm_75,
# and those with asynchronous copies, which share their PTX; it also serves what comes later.
CUDA_ARCHS ?= $(filter $(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code)),75 80 86 90 100 110 120)
NVARCH = $(foreach a,$(CUDA_ARCHS),-gencode=arch=compute_$(if $(filter 75,$(a)),75,80),code=sm_$(a)) \
         -gencode=arch=compute_80,code=compute_80
NVFLAGS := -std=c++20 --extended-lambda -O3 -I. -Irepops/include -DRO_SECTIONS -fmad=false -ftz=false -prec-div=true \
           -prec-sqrt=true -Xcompiler=-fPIC,-fvisibility=hidden,-ffp-contract=off,-fno-fast-math,-Wall -Xptxas=-v -Xfatbin=-compress-all
# How many steps of k the inner loop of products is unrolled by: 4, 8 or 16 (gemm/gemm.cuh); empty: all of a stage.
GEMM_UNROLL ?=
NVFLAGS += $(if $(GEMM_UNROLL),-DRO_GEMM_UNROLL=$(GEMM_UNROLL))
# 1: the code has the numbers of source lines, which tests/lint/ptx.sh reads. Such a library is larger by half.
CUDA_LINES ?=
NVFLAGS += $(if $(CUDA_LINES),-lineinfo)
# Free kernels promise no bits and have no asynchronous copies: sm_86 (and sm_89) runs sm_80's, and all share one PTX.
FREE_NVARCH = $(foreach a,$(if $(filter 80,$(CUDA_ARCHS)),$(filter-out 86 89,$(CUDA_ARCHS)),$(CUDA_ARCHS)),-gencode=arch=compute_75,code=sm_$(a)) \
              -gencode=arch=compute_75,code=compute_75
# Products by wgmma are code of sm_90a alone; other cards find a stub, and never launch it.
wgmma_90a := -DRO_HAS_WGMMA -gencode=arch=compute_90a,code=sm_90a
WGMMA_NVARCH = $(if $(filter 90,$(CUDA_ARCHS)),$(wgmma_90a)) -gencode=arch=compute_75,code=compute_75
# Removes the numbers of source lines from the PTX; X.lines keeps them.
plain_code = for code in $(@:.o=.keep)/*.ptx; do mv $$code $${code%.ptx}.lines && \
    sed -e '/^\t\.loc\t/d' -e '/^\t\.file\t/d' -e '/^\t\.section\t/,$$d' $${code%.ptx}.lines > $$code; done
cuda: ## the CUDA library, by nvcc
cuda: $(BUILD)/lib/librepops_cuda.so.1
define nvcc_rule
	@mkdir -p $(@:.o=.keep)
	@echo "  NVCC    $<$(if $(1), ($(1)))"
	$(Q)$(NVCC) $(NVFLAGS) $(2) --keep --keep-dir $(@:.o=.keep) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@ \
	    2> $(@:.o=.ptxas) || { cat $(@:.o=.ptxas); exit 1; }
	@grep -E 'warning|error' $(@:.o=.ptxas) || true
	@$(if $(CUDA_LINES),$(plain_code))
	@mv $(@:.o=.keep)/*.ptx $(if $(CUDA_LINES),$(@:.o=.keep)/*.lines) $(@D) && rm -rf $(@:.o=.keep)
endef
# Objects are compiled again for other architectures: otherwise the driver would translate their PTX. So they are for another nvcc,
# once it has compiled a test.
cuda_archs := $(BUILD)/obj/repops/cuda/archs
cuda_by = $(CUDA_ARCHS), $(NVCC) $(NVCC_CCBIN) $(GEMM_UNROLL)$(if $(CUDA_LINES), with lines)
$(cuda_archs): FORCE
	@mkdir -p $(@D)
	@[ "$$(cat $@ 2> /dev/null)" = "$(cuda_by)" ] || { NVCC="$(NVCC)" sh repops/cuda/find_nvcc --check && echo "$(cuda_by)" > $@; }
$(BUILD)/obj/repops/cuda/%.o: repops/cuda/%.cu $(cuda_archs)
	$(call nvcc_rule,,$(NVARCH))
$(BUILD)/obj/repops/cuda/gemm/wgmma.o: repops/cuda/gemm/wgmma.cu $(cuda_archs)
	$(call nvcc_rule,,$(WGMMA_NVARCH))
$(BUILD)/obj/repops/cuda/free/f32/%.o: repops/cuda/free/%.cu $(cuda_archs)
	$(call nvcc_rule,f32,$(FREE_NVARCH) -DRO_REAL=f32 -DRO_IS_f32=1)
$(BUILD)/obj/repops/cuda/free/f64/%.o: repops/cuda/free/%.cu $(cuda_archs)
	$(call nvcc_rule,f64,$(FREE_NVARCH) -DRO_REAL=f64 -DRO_IS_f64=1)
$(BUILD)/lib/librepops_cuda.so.1: $(cuda_src:%.cu=$(BUILD)/obj/%.o) $(call cuda_free,$(BUILD)/obj/repops/cuda/free) \
    $(BUILD)/obj/repops/src/op.o repops/librepops_cuda.map
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(NVCC) -shared -cudart static -Xlinker -soname,librepops_cuda.so.1,-Bsymbolic,--version-script=repops/librepops_cuda.map \
	    $(filter %.o,$^) -o $@
cuda-objects: $(cuda_src:%.cu=$(BUILD)/obj/%.o) $(call cuda_free,$(BUILD)/obj/repops/cuda/free)
.PHONY: cuda cuda-objects
