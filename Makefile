# A thin layer over meson: every target makes sure that what it needs is installed, builds, and runs.
.PHONY: all demo check asan tsan fuzz fuzz-long bench interop install clean

all:
	@tools/build/build.sh

demo:
	@tools/build/setup.sh build demo
	@tools/build/build.sh
	@tools/demo.sh build/softverbs

check:
	@tools/build/check.sh plain asan tsan fuzz

asan tsan fuzz:
	@tools/build/check.sh $@

fuzz-long:
	@tools/fuzz.sh $(or $(MINUTES),30)

bench:
	@tools/build/setup.sh build bench
	@tools/build/build.sh
	@bench/bench.py build/softverbs
	@bench/tags.py build/softverbs
	@bench/wire.py build/softverbs
	@bench/polling.py build/softverbs

interop:
	@tools/build/setup.sh build check
	@tools/build/build.sh
	@tests/interop/interop.py

install: all
	@meson install --no-rebuild -C build

clean:
	@rm -rf build build-asan build-tsan build-fuzz
