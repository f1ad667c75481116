# Benchmarks: each compares with those of the named peers that are installed.

$(BUILD)/obj/bench/%.o: bench/%.c $(FLAGS)
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) -c $< -o $@
$(BUILD)/obj/bench/cuda_blas.o: bench/cuda_blas.cu
	@mkdir -p $(@D)
	@echo "  NVCC    $<"
	$(Q)$(NVCC) -I. -c $< -o $@
# Compiles PTX for this machine's GPU, with the library's flags.
$(BUILD)/obj/bench/cuda_packing.o: bench/cuda_packing.cu
	@mkdir -p $(@D)
	@echo "  NVCC    $<"
	$(Q)$(NVCC) $(filter-out -Xptxas=-v,$(NVFLAGS)) $(NVARCH) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@
# The benchmark loads cuBLAS if it is installed; the library never does.
$(BUILD)/bench/cuda: $(addprefix $(BUILD)/obj/bench/,cuda.o cuda_products.o cuda_layers.o cuda_packing.o cuda_streams.o cuda_steps.o process.o cuda_blas.o) \
    $(cuda_job) $(BUILD)/lib/libverde_own.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(NVCC) $^ -cudart static -Xcompiler=-pthread -ldl -o $@

# Convolutions, pooling, batch norm: make bench-conv ARGS="--isa avx2 --threads 2 --torch python3";
# attention: make bench-attention with the same.
bench-conv: ## convolutions beside PyTorch
bench-attention: ## attention beside PyTorch
bench-conv bench-attention: bench-%: $(BUILD)/bench/%
	$< $(ARGS)
$(BUILD)/bench/%: bench/%.c $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	$(CC) $(BASE) $(OPT) $(CFLAGS) $(filter-out %.a,$^) $(filter %.a,$^) $(LDFLAGS) -o $@
.PHONY: bench-conv bench-attention
TORCH_BENCHES := $(addprefix $(BUILD)/bench/,conv attention elementwise step)
$(TORCH_BENCHES): bench/process.c | $(BUILD)/bench/mkl_kernels.so
$(BUILD)/bench/mkl_kernels.so: bench/mkl_kernels.c
	@mkdir -p $(@D)
	$(CC) -std=c11 $(WARN) -O2 -fPIC -shared $< -o $@

# PyTorch's models inside and outside of repops.torch's block: make bench-python PYTHON=python3
# ARGS="gpt2 resnet50". THREADS=1 measures CPU time. MKL uses its widest kernels, or with
# MKL=installed those that it chooses itself.
bench-python: ## PyTorch's models with the library and without
bench-python: $(BUILD)/lib/$(RO_SONAME) $(COMMIT_LIB) $(BUILD)/bench/mkl_kernels.so
	$(Q)PYTHONPATH=python REPOPS_LIBRARY=$(abspath $<) \
	    LD_PRELOAD=$(if $(filter installed,$(MKL)),,$(abspath $(BUILD)/bench/mkl_kernels.so)) \
	    $(PYTHON) bench/block.py $(ARGS)
.PHONY: bench-python

# Inference of ONNX models beside onnxruntime: make bench-onnx PYTHON=python3 ARGS="resnet18 gpt2 --table FILE".
bench-onnx: ## models of ONNX by verde run and by onnxruntime
bench-onnx: $(BUILD)/bin/verde $(BUILD)/lib/$(RO_SONAME) $(COMMIT_LIB)
	$(Q)PYTHONPATH=python REPOPS_LIBRARY=$(abspath $(BUILD)/lib/$(RO_SONAME)) VERDE=$(abspath $<) OMP_WAIT_POLICY=passive \
	    $(PYTHON) bench/onnx_runtime.py $(ARGS)
.PHONY: bench-onnx

# Products against other libraries that are installed: prints tables, and writes
# $(BUILD)/bench/cpu.csv. One table only: make bench-cpu ARGS="--isa avx2 --threads 2 --only
# squares".
bench-cpu: ## products beside OpenBLAS, BLIS and oneDNN
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

# Fixed products against our FP32 and the best of those libraries: prints tables, and writes
# $(BUILD)/bench/exact.csv. One table only: make bench-exact ARGS="--isa avx2 --threads 2".
bench-exact: ## fixed products beside OpenBLAS, BLIS, oneDNN and our FP32
bench-exact: $(BUILD)/bench/exact
ifdef ARGS
	$< $(ARGS)
else
	@rm -f $(BUILD)/bench/exact.csv
	$(Q)for isa in $$(sh tests/isas.sh | cut -d' ' -f2-); do for threads in 1 2; do \
	    $< --isa $$isa --threads $$threads --csv $(BUILD)/bench/exact.csv || exit 1; \
	done; done
endif
$(BUILD)/bench/exact: bench/exact.c bench/peers.c bench/peers.h bench/bench.h $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) $(filter-out %.h,$^) $(LDFLAGS) -lm -o $@
.PHONY: bench-exact

# Fixed convolutions beside FP32: make bench-exact-conv ARGS="--isa avx2 --threads 2".
bench-exact-conv: ## fixed convolutions beside our FP32
bench-exact-conv: $(BUILD)/bench/exact_conv
	$< $(ARGS)
$(BUILD)/bench/exact_conv: LDFLAGS += -lm
.PHONY: bench-exact-conv

# The CBLAS interface beside OpenBLAS: make bench-blas ARGS="--isa avx2 --threads 2".
bench-blas: ## the BLAS front beside OpenBLAS
bench-blas: $(BUILD)/bench/cpu_blas $(BUILD)/lib/$(BLAS_SONAME)
	$< $(BUILD)/lib/$(BLAS_SONAME) $(ARGS)
$(BUILD)/bench/cpu_blas: LDFLAGS += -lm
.PHONY: bench-blas

# Elementary functions beside libmvec, and all operators without products beside memcpy and PyTorch:
# make bench-functions ARGS="--isa avx2"; make bench-elementwise ARGS="--isa avx2 --torch python3".
bench-functions: ## exp, log, ... beside libmvec
bench-elementwise: ## operators without products beside PyTorch
bench-functions bench-elementwise: bench-%: $(BUILD)/bench/%
	$< $(ARGS)
$(BUILD)/bench/functions: LDFLAGS += $(if $(filter x86_64,$(ARCH)),-lmvec) -lm
$(BUILD)/bench/attention $(BUILD)/bench/conv $(BUILD)/bench/elementwise: LDFLAGS += -lm
$(BUILD)/bench/elementwise: bench/elementwise_works.c bench/elementwise_calls.c
.PHONY: bench-functions bench-elementwise

# A whole training step beside PyTorch's: make bench-step ARGS="--torch python3 --profile".
bench-step: ## a training step beside PyTorch
bench-step: $(BUILD)/bench/step
	$< $(ARGS)
$(BUILD)/bench/step: bench/step.c bench/workload.c $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	$(CC) $(BASE) $(OPT) $(CFLAGS) $^ $(LDFLAGS) $(PKG_LIBS) -o $@
.PHONY: bench-step

# Estimated seconds of steps beside measured ones: make bench-estimates PYTHON=python3 ARGS="matmul"
# for programs with that word in their names. The Python package writes the programs.
bench-estimates: ## estimates of steps beside the time that they take
bench-estimates: $(BUILD)/bench/estimates $(BUILD)/lib/$(RO_SONAME)
	$(Q)PYTHONPATH=python REPOPS_LIBRARY=$(BUILD)/lib/$(RO_SONAME) \
	    $(PYTHON) bench/estimates.py $< "$(ARGS)" $(estimated_models)
estimated_models := $(patsubst %,models/jobs/%.yaml,toy mlp llama-tiny bert-tiny resnet-tiny) bench/estimates_gpt2.yaml
$(BUILD)/bench/estimates: bench/estimates.c $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) $^ $(LDFLAGS) $(PKG_LIBS) -lm -o $@
.PHONY: bench-estimates

# Predictions for many processes, from times of one thread and an assumed network: make bench-team-model ARGS="--gbit 25".
bench-team-model: ## a step by 2 to 512 processes, as a model predicts it
bench-team-model: $(BUILD)/bench/team_model
	$< $(ARGS)
$(BUILD)/bench/team_model: bench/team_model.c bench/workload.c $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) $^ $(LDFLAGS) $(PKG_LIBS) -lm -o $@
.PHONY: bench-team-model

# The time to check answers beside the time to generate them: make bench-prefill ARGS="--model llama-0.5b
# --dtype bf16".
bench-prefill: ## the check of answers beside their generation
bench-prefill: $(BUILD)/bench/prefill
	$< $(ARGS)
$(BUILD)/bench/prefill: bench/prefill.c bench/generate_model.c $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) $^ $(LDFLAGS) $(PKG_LIBS) -lm -o $@
.PHONY: bench-prefill

# Token generation beside transformers: make bench-generate ARGS="--torch python3 --model
# llama-0.5b".
bench-generate: ## generation beside transformers
bench-generate: $(BUILD)/bench/generate
	$< $(ARGS)
$(BUILD)/bench/generate: bench/generate.c bench/generate_model.c bench/process.c $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a | $(BUILD)/bench/mkl_kernels.so
	@mkdir -p $(@D)
	$(CC) $(BASE) $(OPT) $(CFLAGS) $^ $(LDFLAGS) $(PKG_LIBS) -lm -o $@
.PHONY: bench-generate

# Commitments of large tensors; needs 2 GiB of memory and a sixteenth more: make bench-trees
# ARGS="--mib 512".
bench-trees: ## hashing, proofs and answers about large tensors
bench-trees: $(BUILD)/bench/trees
	$< $(ARGS)
$(BUILD)/bench/trees: bench/trees.c bench/trees_question.c bench/trees.h $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	$(CC) $(BASE) $(OPT) $(CFLAGS) $(filter-out %.h,$^) $(LDFLAGS) $(PKG_LIBS) -lm -o $@
.PHONY: bench-trees

# Disputes of 2 to 64 providers, one of which is honest, in memory: make bench-dispute ARGS="16".
# Its providers come from the tests, so it needs libcriterion.
bench-dispute: ## disputes of 2 to 64 providers: rounds, bytes, work
bench-dispute: $(BUILD)/bench/dispute
	$< $(ARGS)
$(BUILD)/bench/dispute: bench/dispute.c $(test_support) $(tools_obj) $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	$(CC) $(BASE) $(OPT) $(CFLAGS) $(filter-out %.h,$^) $(LDFLAGS) $(PKG_CFLAGS) $(PKG_LIBS) -lcriterion -lm -o $@
.PHONY: bench-dispute

# Rounding logs beside a fixed order: make bench-determinism ARGS="--model resnet50 --size full".
bench-determinism: ## rounding logs beside a fixed order
bench-determinism: $(BUILD)/bench/determinism
	$< $(ARGS)
$(BUILD)/bench/determinism: $(wildcard bench/determinism/*.[ch]) bench/workload.c bench/workload.h $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	$(CC) $(BASE) $(OPT) $(CFLAGS) $(filter-out %.h,$^) $(LDFLAGS) $(PKG_LIBS) -lm -o $@
.PHONY: bench-determinism

# Steps of fine-tuning at common sizes, and a dispute about one; needs only python3, 20 GB of disk and 12 of memory. Only some of
# it: make bench-finetune ARGS="smollm-135m qwen2-0.5b:lora".
bench-finetune: ## time and memory of fine-tuning; a referee's memory
bench-finetune: $(BUILD)/bin/verde
	python3 bench/finetune.py $< $(BUILD)/finetune $(ARGS)
ifndef ARGS
	python3 bench/finetune_dispute.py $< $(BUILD)/finetune
	python3 bench/finetune_dispute.py $< $(BUILD)/finetune weights@0:m0.embed.tokens lora
endif
.PHONY: bench-finetune

# Time and memory of capturing GPT-2 124M (repops.jobs); needs a Python with torch, 8 GB of memory and 1 of
# disk.
bench-capture: ## time and memory of capturing GPT-2 124M
bench-capture: $(BUILD)/bin/verde $(BUILD)/lib/librepops.so.1
	VERDE=$(abspath $<) REPOPS_LIBRARY=$(abspath $(BUILD)/lib/librepops.so.1) PYTHONPATH=python \
	    $(PYTHON) bench/capture_gpt2.py $(BUILD)/bench/capture --check $(ARGS)
.PHONY: bench-capture

# Captured steps of six models beside PyTorch, and GPT-2 also beside the same job built in C; needs a Python with torch, torchvision,
# timm and transformers: make bench-captured PYTHON=python3 ARGS="vit lstm --rounds 9".
bench-captured: ## captured steps beside PyTorch and beside jobs built in C
bench-captured: $(BUILD)/bench/captured $(BUILD)/bin/verde $(BUILD)/lib/librepops.so.1 $(COMMIT_LIB) $(BUILD)/bench/mkl_kernels.so
	VERDE=$(abspath $(BUILD)/bin/verde) REPOPS_LIBRARY=$(abspath $(BUILD)/lib/librepops.so.1) PYTHONPATH=python \
	    LD_PRELOAD=$(if $(filter installed,$(MKL)),,$(abspath $(BUILD)/bench/mkl_kernels.so)) \
	    $(PYTHON) bench/captured.py $< $(ARGS) --folder $(BUILD)/bench/captured-jobs
$(BUILD)/bench/captured: bench/captured.c $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	@echo "  LD      $@"
	$(Q)$(CC) $(BASE) $(OPT) $(CFLAGS) $^ $(LDFLAGS) $(PKG_LIBS) -lm -o $@
.PHONY: bench-captured

# Answers of captured models by `verde run`, beside PyTorch eager; needs the Python of bench-captured: make bench-answers PYTHON=python3
# ARGS="vit --rounds 9".
bench-answers: ## answers of captured models beside PyTorch
bench-answers: $(BUILD)/bin/verde $(BUILD)/lib/librepops.so.1 $(COMMIT_LIB) $(BUILD)/bench/mkl_kernels.so
	REPOPS_LIBRARY=$(abspath $(BUILD)/lib/librepops.so.1) PYTHONPATH=python \
	    LD_PRELOAD=$(if $(filter installed,$(MKL)),,$(abspath $(BUILD)/bench/mkl_kernels.so)) \
	    $(PYTHON) bench/answers.py $(abspath $<) $(ARGS) --folder $(BUILD)/bench/answers
.PHONY: bench-answers

# A download of 1 GB beside curl; needs python3, curl, openssl and 5 GB of disk: make bench-fetch ARGS="--rounds 3".
bench-fetch: ## a download of 1 GB, checked, beside curl
bench-fetch: $(BUILD)/bin/verde
	python3 bench/transfer.py fetch $< $(BUILD)/bench/fetch $(ARGS)
.PHONY: bench-fetch

# An upload of 1 GB beside curl; needs the same: make bench-upload ARGS="--rounds 3".
bench-upload: ## an upload of 1 GB, checked, beside curl
bench-upload: $(BUILD)/bin/verde
	python3 bench/transfer.py upload $< $(BUILD)/bench/upload $(ARGS)
.PHONY: bench-upload

# GPT-2 124M by teams beside one process: make bench-team ARGS="--rounds 3"; needs python3 and an MPI.
bench-team: ## a training step by several processes of MPI
bench-team: $(BUILD)/bench/team mpi
	python3 bench/team.py $< $(ARGS)
$(BUILD)/bench/team: bench/team.c bench/workload.c $(BUILD)/lib/libverde.a $(BUILD)/lib/librepops.a
	@mkdir -p $(@D)
	$(CC) $(BASE) $(OPT) $(CFLAGS) $^ $(LDFLAGS) $(PKG_LIBS) -o $@
.PHONY: bench-team

# Losses of the same jobs with fixed products and 16-bit storage, beside fp32 with other seeds; takes an hour of two cores and 5 GB of
# disk. Runs whose results are in bench/results/products are not repeated: make bench-curves ARGS=gpt2-1m:fixed24. PyTorch's own losses
# need a Python with PyTorch and transformers: ARGS="gpt2-10m:pytorch_bf16 --torch python3".
bench-curves: ## losses with fixed products and storage of 16 bits
bench-curves: $(BUILD)/bin/verde
	python3 bench/curves/run.py $< $(BUILD)/curves --out bench/results/products $(ARGS)
.PHONY: bench-curves
