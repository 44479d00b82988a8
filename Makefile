# A thin layer over meson: every target makes sure that what it needs is installed, builds, and runs.
.PHONY: all demo check asan tsan fuzz fuzz-long storm coverage bench interop releases clients lab matrix profiles adverse around rules upstream look pictures site model srd-seeds sim-seeds sim-races sim-hangs replays mutants reports new-fact new-kind install uninstall packages dist release clean

# For users: without the tests and what they need. A directory that has the tests keeps them.
all:
	@tools/build/build.sh build -Dtests=false
	@echo 'Built build/softverbs. What next:'
	@echo '  build/softverbs demo --all       a tour: messages, a wrong key explained, a lost frame, packets'
	@echo '  build/softverbs doctor           what this machine lacks'
	@echo '  build/softverbs run -- PROGRAM   your own program'
	@echo '  make install PREFIX=...          the command, manual pages and completions'
	@echo '  make check                       every test; CONTRIBUTING.md has the shorter ways'

# Quickly: without optimization at link time, which `make` adds.
demo:
	@tools/build/setup.sh build demo
	@tools/build/build.sh --quick --target command build -Dtests=false
	@build/softverbs demo

check:
	@tools/build/check.sh plain asan tsan fuzz

asan tsan fuzz:
	@tools/build/check.sh $@

fuzz-long:
	@tools/fuzz.sh $(or $(MINUTES),30)

storm:
	@tools/build/setup.sh build check
	@tools/build/build.sh --again build -Dtests=true
	@tools/build/build.sh --again build-tsan -Dtests=true -Db_sanitize=thread -Db_lundef=false
	@tests/clients/storm.py $(or $(MINUTES),60)

coverage:
	@tools/build/setup.sh build tests
	@tools/build/build.sh --again build-cov -Dtests=true -Db_coverage=true
	@find build-cov -name '*.gcda' -delete
	@meson test -C build-cov --no-rebuild --no-suite clients --no-suite house --no-suite purity $(if $(SUITE),--suite $(SUITE)) | tail -n 12
	@tools/build/coverage.py build-cov

bench:
	@tools/build/setup.sh build bench
	@tools/build/build.sh --target benches build -Dtests=false
	@bench/bench.py build/softverbs
	@bench/tags.py build/softverbs
	@bench/wire.py build/softverbs
	@bench/polling.py build/softverbs
	@bench/trace.py build/softverbs 3
	@bench/trace.py build/softverbs 3 --two
	@bench/record.py build/softverbs 3
	@bench/costs.py build/softverbs
	@bench/srd_peers.py build/softverbs
	@bench/queues.py build/softverbs
	@bench/sleeping.py build/softverbs

interop:
	@tools/build/setup.sh build check
	@tools/build/build.sh --again build -Dtests=true
	@tests/interop/interop.py
	@tests/interop/around.py

releases:
	@tests/releases/releases.sh

# Installs what Debian 12 has of clients, 150 packages with what they need, among them Ceph's daemons and tgt, whose services then start.
clients:
	@tools/build/setup.sh build check || true
	@tools/build/setup.sh clients || true
	@tools/build/build.sh --again build -Dtests=true
	@tests/clients/families/main.py

# All that `make check` runs only a part of; an hour, or SCRIPT=perftest alone. Stopped, it goes on where it was.
profiles:
	@tools/build/setup.sh build check
	@tools/build/build.sh --again build -Dtests=true
	@tests/profiles/clients_by_profile.py

lab:
	@tools/build/setup.sh build check lab
	@tools/build/build.sh --again build -Dtests=true
	@tests/tool/lab/lab_evidence.py

# Days, for all of it; the rows of clients take two hours with ADVERSE_BESIDE=6. PART=litmus, rows or seeds, and WORDS. Stopped, it goes on where it was.
adverse:
	@tools/build/setup.sh build check
	@tools/build/build.sh --again build -Dtests=true
	@tests/adverse/evidence.py $(PART) $(WORDS)

# Each case of the checker's rules around another libibverbs, which is softverbs' own; `make check` has one of each rule, and the cases of calls.
around:
	@tools/build/build.sh --again build -Dtests=true
	@SOFTVERBS_BUILD=build tools/build/own_directory.sh python3 tests/check/rules_test.py --around --all

# Rules that come beside begun work; three quarters of an hour, or WORDS of a row. Stopped, it goes on where it was.
rules:
	@tools/build/setup.sh build check
	@tools/build/build.sh --again build -Dtests=true
	@tests/rules/rules.py $(WORDS)

# The test suites of other projects, from checkouts of theirs: CHECKOUTS=DIRECTORY, ONLY=NAME, PART=WORDS, AGAIN=1. Fetches none. Hours, for all; stopped, it goes on where it was.
upstream:
	@tools/build/build.sh build -Dtests=false
	@tests/upstream/upstream.py "$(CHECKOUTS)" --only "$(ONLY)" --part "$(PART)" $(if $(AGAIN),--again)

# Of the pages and manual pages, in build/site/html.
site:
	@tools/build/setup.sh build site
	@tools/build/build.sh build -Dtests=false
	@tools/site/site_pages.py build build/site

# Of the layers and of what `softverbs demo` prints, for README and pages; a test compares them.
pictures:
	@tools/build/setup.sh build demo
	@tools/build/build.sh --quick --target command build -Dtests=false
	@tools/site/pictures.py layers docs/explanation/layers.svg
	@tools/site/pictures.py transcript docs/explanation/demo.svg build/softverbs demo
	@tools/site/pictures.py transcript docs/explanation/tour.svg build/softverbs demo --all

# Recordings of a build of gcc, run again in builds of clang and with sanitizers.
replays:
	@tools/build/setup.sh build check
	@tools/build/replays.sh

# In headless Chromium: the pages of softverbs draw.
# A minute: in a copy of the build.
new-fact:
	@tools/build/setup.sh build check
	@tools/build/build.sh --again build -Dtests=true
	@tests/changes/new_fact.py build

# The same of a new type of queue pairs.
new-kind:
	@tools/build/setup.sh build check
	@tests/changes/new_kind.py

look:
	@tools/build/setup.sh build look
	@tools/build/build.sh --again build -Dtests=true
	@tests/look/look.py $(CASE)

# Programs of outside reports, from the directory PROGRAMS, under the checker and the log: each says what its report missed.
reports:
	@tools/build/build.sh --again build -Dtests=true
	@tests/check/reports.py $(PROGRAMS)

# Changes the code in 200 places, one at a time in a copy, and says which tests notice: hours. NUMBERS="3 17" judges those anew. Stopped, it goes on where it was.
mutants:
	@tools/build/setup.sh build check
	@tests/mutants/mutants.py run $(NUMBERS)

matrix:
	@tools/build/setup.sh build check
	@tools/build/build.sh --again build -Dtests=true
	@tests/clients/matrix.py $(SCRIPT)

# Random worlds of SRD: 36 minutes of processor time, or SEEDS=5000 of each kind. Stopped, it goes on where it was; it is new after FROM=1.
srd-seeds:
	@tools/build/setup.sh build tests
	@tools/build/build.sh --again build -Dtests=true
	@$(if $(FROM),rm -f build/srd-seeds.*)
	@SOFTVERBS_SRD_SEEDS=$(or $(SEEDS),200000) SOFTVERBS_SRD_KEPT=build/srd-seeds SOFTVERBS_SRD_FIRST=$(or $(FROM),1) build/src/transport/srd_seeds_test

# Clients under `softverbs sim`, each with many seeds, and one seed many times; BESIDE=20 runs busy processes beside them.
sim-seeds:
	@tools/build/setup.sh build tests
	@tools/build/build.sh --again build -Dtests=true
	@SOFTVERBS_BUILD=build tests/sim/seeds.py $(ONLY)

# Races of other projects, from checkouts of theirs: CHECKOUTS=DIRECTORY, ONLY=WORDS, AGAIN=1. Fetches none. An hour; stopped, it goes on where it was.
sim-races:
	@tools/build/setup.sh build
	@tools/build/build.sh build -Dtests=false
	@SOFTVERBS_BUILD=build AGAIN=$(AGAIN) tests/sim/races.py "$(CHECKOUTS)" $(ONLY)

# Mends of hangs taken back one by one, which seeds must find: ONLY=03 runs that one again. Stopped, it goes on where it was.
sim-hangs:
	@tools/build/setup.sh build tests
	@tools/build/build.sh --again build -Dtests=true
	@SOFTVERBS_BUILD=build tests/sim/hangs.py $(ONLY)

# The scenarios that have one preemption less in `make check`, where they would take half of the model's time.
model:
	@tools/build/setup.sh build tests
	@tools/build/build.sh --again build -Dtests=true
	@build/tests/model/model --scenario doorbell-rest-held-stores --preemptions 1
	@build/tests/model/model --scenario one-sided-keys --preemptions 2
	@build/tests/model/model --scenario one-sided-requesters --preemptions 1

# As root, on Debian: all files of a release, as users get them, or KIND="tarball wheel". Installs debootstrap and what these kinds want.
dist:
	@packaging/dist/dist.sh $(KIND)

# Numbers the tree, tags it, and makes dist: docs/how-to/release.md.
release:
	@tools/release/release.py make $(VERSION)

packages:
	@tools/build/setup.sh build packages
	@tools/build/packages.sh

install uninstall:
	@PREFIX="$(PREFIX)" LIBDIR="$(LIBDIR)" DESTDIR="$(DESTDIR)" tools/build/install.sh $@

clean:
	@rm -rf build build-asan build-tsan build-fuzz build-cov build-mutants build-replays dist
