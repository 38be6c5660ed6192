# Builds, tests and installs the library. Needs Rust, a C compiler and make; what tests need beyond that they install.
# Paths may hold blanks: they go to the scripts through the environment, and no file is named as a target here.

CARGO ?= cargo
PREFIX ?= /usr/local
# Below PREFIX, where they are relative: lib and include, where they are not given.
LIBDIR ?=
INCLUDEDIR ?=
DESTDIR ?=
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
# Given to cargo, too, so that a target directory of the user's configuration does not hide what was built.
TARGET := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
export PREFIX LIBDIR INCLUDEDIR DESTDIR TARGET
BUILD = $(CARGO) build --release --target-dir "$$TARGET"

.PHONY: all core emulator demo check lint suite examples model fuzz header bench bench-instructions gpu-bundle \
	sanitize-address sanitize-thread memcheck helgrind miri \
	install install-core uninstall clean

all:
	$(BUILD) --package aml-dma-cuda
	@sh scripts/archive.sh "$$TARGET" aml_dma_cuda symbols.txt

core:
	$(BUILD) --package aml-core
	@sh scripts/archive.sh "$$TARGET" aml_core aml-core/symbols.txt

emulator:
	$(BUILD) --package cuda-emulator
	@sh scripts/emulator.sh "$$TARGET"

demo: all core emulator
	@sh scripts/demo.sh "$$TARGET"

# Everything that can be tested without a GPU.
check: emulator
	@CARGO="$(CARGO)" sh scripts/check.sh

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --workspace --all-targets --target-dir "$$TARGET" -- --deny warnings

# The C suite, on the software driver.
suite: all core emulator
	@top=$$(realpath "$$TARGET") && sh scripts/suite.sh "$$top" capi-tests capi-tests \
		-Dbuilt="$$top/release" -DAML_DMA_CUDA_ARCHIVE="$$top/dist/libaml_dma_cuda.a" \
		-DCUDA_DRIVER_LIBRARY="$$top/emulator/libcuda.so.1"

# The examples, as programs of a user who has both libraries installed.
examples: all core emulator
	@top=$$(realpath "$$TARGET") && \
		$(MAKE) --no-print-directory install install-core DESTDIR= PREFIX="$$top/stage" LIBDIR=lib INCLUDEDIR=include && \
		sh scripts/suite.sh "$$top" examples examples -DCMAKE_PREFIX_PATH="$$top/stage" \
		-DCUDA_DRIVER="$$top/emulator/libcuda.so.1" -DCUDA_HEADERS="$(CURDIR)/capi-tests/cuda-emulator/include"

# Random sequences of calls against a model: at least so many calls.
MODEL_OPERATIONS ?= 10000000
model: emulator
	MODEL_OPERATIONS=$(MODEL_OPERATIONS) $(CARGO) test --release --target-dir "$$TARGET" --package aml-dma-cuda --test model -- --nocapture

# The same, with sequences of libFuzzer's; needs cargo-fuzz and a nightly toolchain, and ends when interrupted. Threads of
# the driver's streams end when they like, and what the C library keeps for them would be taken for lost.
FUZZ_FLAGS ?= -- -detect_leaks=0 -len_control=0 -max_len=3300 -timeout=150 -rss_limit_mb=4096
fuzz: emulator
	cd fuzz && $(CARGO) +nightly fuzz run model $(FUZZ_FLAGS)

# The C suite under AddressSanitizer with LeakSanitizer, ThreadSanitizer, and valgrind's memcheck and helgrind; flags for
# ctest in SANITIZE_FLAGS. All but memcheck need a nightly toolchain with rust-src. They take long, and check does not
# run them.
memcheck: all core emulator
sanitize-address sanitize-thread memcheck helgrind:
	@sh scripts/sanitize.sh $(@:sanitize-%=%)

# The unit tests under Miri, those with threads in MIRI_SEEDS more orders of events; a part of them by name in MIRI_FLAGS.
# Needs a nightly toolchain with miri and rust-src, and some minutes.
miri:
	@sh scripts/miri.sh

header:
	HEADER=rewrite $(CARGO) test --target-dir "$$TARGET" --package aml-dma-cuda --test header

bench: all emulator
	@sh scripts/bench.sh $(BENCH_FLAGS)

# Instructions per call, counted by valgrind on the software driver, against a checked-in bound.
bench-instructions: all emulator
	@sh scripts/bench-instructions.sh $(BENCH_FLAGS)

# Everything that a machine with a GPU and without Rust needs to run the suite and the benchmark.
gpu-bundle: all core emulator
	@sh scripts/gpu-bundle.sh

install: all
	@sh scripts/install.sh "$$TARGET" library "$(VERSION)"

install-core: core
	@sh scripts/install.sh "$$TARGET" core "$(VERSION)"

uninstall:
	@sh scripts/install.sh "$$TARGET" uninstall "$(VERSION)"

clean:
	$(CARGO) clean --target-dir "$$TARGET"
