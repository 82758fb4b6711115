# `make run` and `make test` are all a newcomer needs.
PRESET ?= release
BUILD := build/$(PRESET)
PYTHON ?= python3
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local

.PHONY: help deps configure build run test test-programs test-all wheel wheel-libraries test-preloaded test-fresh test-separate test-threads fuzz bench-torch bench-ort bench-exports bench-neighbour bench-pack bench-fit bench-plan bench-malloc figures install clean format

help:            ## list the targets
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' $(MAKEFILE_LIST) | expand -t 16

deps:            ## install the Debian packages that are missing
	@tools/install_packages.sh

configure: deps
	@cmake --preset $(PRESET) >/dev/null

build: configure ## build everything; the program is build/release/plimsoll
	@cmake --build $(BUILD) -j $(JOBS)

run: configure   ## plan and train a real model under a budget, print before and after, write the report
	@cmake --build $(BUILD) -j $(JOBS) --target plimsoll
	@tools/demo.sh $(BUILD)/plimsoll

test: configure  ## build and run the tests
	@cmake --build $(BUILD) -j $(JOBS) --target unit_tests
	@ctest --test-dir $(BUILD) -L unit --output-on-failure -j $(JOBS)

test-programs: configure ## the programs as people use them: every command of the documents, ranks, installed packages
	@cmake --build $(BUILD) -j $(JOBS) --target unit_tests
	@ctest --test-dir $(BUILD) -L program --output-on-failure -j $(JOBS)

test-preloaded: configure ## `make test` with our own allocator in place of the C library's
	@cmake --build $(BUILD) -j $(JOBS) --target unit_tests plimsoll_malloc
	@LD_PRELOAD=$(CURDIR)/$(BUILD)/libplimsoll_malloc.so ctest --test-dir $(BUILD) -L unit --output-on-failure -j $(JOBS)

# A slow test whose tool is missing fails: so all of them are installed first.
test-all: build  ## the slow tests too, with the packages they need
	@tools/install_packages.sh tools/packages_slow.txt
	@tools/install_python.sh $(BUILD)/python
	@tools/install_python.sh $(BUILD)/python-torch python_torch.txt
	@cmake --preset $(PRESET) -DPLIMSOLL_PYTHON=$(CURDIR)/$(BUILD)/python/bin/python3 >/dev/null
	@$(BUILD)/python/bin/python3 tools/references/onnx_node_cases.py $(BUILD)/onnx-cases
	@PLIMSOLL_ONNX_CASES=$(CURDIR)/$(BUILD)/onnx-cases ctest --test-dir $(BUILD) -LE cuda --output-on-failure -j $(JOBS)

wheel: wheel-libraries ## the PyTorch package: build/wheel/plimsoll_torch-*.whl
	@$(PYTHON) tools/make_wheel.py --build $(BUILD) --out build/wheel

wheel-libraries: configure
	@cmake --build $(BUILD) -j $(JOBS) --target plimsoll_shared

test-fresh:      ## the two commands on a bare Debian 12, made for the purpose (needs root or sudo)
	@tools/test_fresh.sh

test-threads: deps ## every race a plan or the executor could have: a device that runs its streams in random order, under ThreadSanitizer
	@cmake --preset tsan -DPLIMSOLL_CUDA=OFF >/dev/null
	@cmake --build build/tsan -j $(JOBS) --target device_test runtime_test
	@ctest --test-dir build/tsan -R '^(device|runtime)$$' --output-on-failure --no-tests=error

fuzz: build      ## fuzz every parser for ten minutes each (FUZZ="--seconds 60 --only onnx_fuzz")
	@tools/install_packages.sh tools/packages_fuzz.txt
	@cmake --preset fuzz >/dev/null
	@cmake --build build/fuzz -j $(JOBS) --target fuzzers
	@$(PYTHON) tools/fuzz.py --plimsoll $(BUILD)/plimsoll $(FUZZ)

test-separate: deps ## compile every file by itself: each must include what it uses
	@cmake --preset separate >/dev/null
	@cmake --build build/separate -j $(JOBS)

bench-torch: build ## training steps against PyTorch's (PYTHON=a Python that has torch)
	@$(PYTHON) tools/bench_torch.py --plimsoll $(BUILD)/plimsoll

bench-ort: build  ## inference beside onnxruntime (PYTHON must have onnxruntime)
	@$(PYTHON) tools/references/bench_ort.py $(BUILD)/plimsoll

bench-exports: build ## ten real models exported from PyTorch, training and inference (PYTHON with torch, timm, transformers, onnxruntime; BENCH="--models …")
	@$(PYTHON) tools/references/bench_exports.py $(BUILD)/plimsoll $(BENCH)

bench-neighbour: build ## what a busy process beside a training step costs
	@$(PYTHON) tools/bench_neighbour.py --plimsoll $(BUILD)/plimsoll

bench-pack: build ## benchmarks of the packer (PLIMSOLL_CORPUS names the folder of problems)
	@$(BUILD)/bin/pack_bench

bench-fit: build  ## benchmarks of fitting a budget
	@$(BUILD)/bin/fit_bench
	@$(BUILD)/bin/run_bench

bench-plan: build ## benchmarks of planning: its time, and a planned step beside one without a plan
	@$(BUILD)/bin/plan_bench

figures:         ## rerun the figures of README and docs/benchmarks.md and rewrite their tables (ONLY="bytes packer", ONLY=--quick; PYTHON=one with torch and onnxruntime)
	@$(PYTHON) tools/figures.py --build $(BUILD) --python $(PYTHON) $(ONLY)

bench-malloc: build ## benchmarks of the host allocator (RIVALS="--allocator NAME=PATH …", PYTHON with torch for one row)
	@bench/malloc/bench.py $(BUILD) $(RIVALS) $(if $(filter-out python3,$(PYTHON)),--python $(PYTHON))

install: build   ## install program, library and headers (PREFIX=/usr/local)
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:           ## remove what was built
	rm -rf build

format:          ## clang-format every source
	git ls-files --cached --others --exclude-standard '*.h' '*.c' '*.cpp' '*.cu' | xargs clang-format-14 -i
