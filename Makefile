# Builds, tests and installs the library. Needs Rust, a C compiler and make; what tests need beyond that they install.
# Paths may hold blanks: they go to the scripts through the environment, and no file is named as a target here.

CARGO ?= cargo
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DESTDIR ?=
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
# Given to cargo, too, so that a target directory of the user's configuration does not hide what was built.
TARGET := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
export PREFIX LIBDIR INCLUDEDIR DESTDIR TARGET
BUILD = $(CARGO) build --release --target-dir "$$TARGET"

.PHONY: all core emulator demo check lint suite examples header bench bench-instructions gpu-bundle \
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

header:
	HEADER=rewrite $(CARGO) test --target-dir "$$TARGET" --package aml-dma-cuda --test header

install: all
	@sh scripts/install.sh "$$TARGET" library "$(VERSION)"

install-core: core
	@sh scripts/install.sh "$$TARGET" core "$(VERSION)"

uninstall:
	@sh scripts/install.sh "$$TARGET" uninstall "$(VERSION)"

clean:
	$(CARGO) clean --target-dir "$$TARGET"
