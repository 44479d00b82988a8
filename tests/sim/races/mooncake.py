"""How races.py builds Mooncake's transfer engine with our program in front of it: RDMA alone, with Debian's libraries."""
import glob
import os
import subprocess

import sources

NAME, TITLE = "mooncake", "Mooncake"
HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ["ninja-build", "g++", "libibverbs-dev", "libgoogle-glog-dev", "libgflags-dev", "libjsoncpp-dev", "libnuma-dev"]
ENGINE = "mooncake-transfer-engine"
# As the project's own build has it (CONFIG_ERDMA), with jsoncpp where Debian has it.
FLAGS = f"-std=c++20 -O1 -g1 -w -DCONFIG_ERDMA -I/usr/include/jsoncpp -I{ENGINE}/include -Imooncake-common/include"
LIBRARIES = "-libverbs -lglog -lgflags -ljsoncpp -lnuma -lpthread -ldl"
RULES = f"""rule cc
 command = g++ {FLAGS} -MMD -MF $out.d -c $in -o $out
 depfile = $out.d
rule link
 command = g++ $in -o $out {LIBRARIES}
rule c
 command = cc -O1 $in -o $out
"""


def _units(place):
    listed = [path for folder in ("", "common/base/", "transport/rdma_transport/") for path in glob.glob(f"{place}/{ENGINE}/src/{folder}*.cpp")]
    return [os.path.relpath(path, place) for path in sorted(listed) if not path.endswith("transfer_engine_c.cpp")] + [f"{ENGINE}/src/transport/transport.cpp"]


def build(checkout, commit, mend, work, target):
    assert not mend
    place = f"{work}/mooncake"
    sources.bring(checkout, commit, [ENGINE, "mooncake-common"], place)
    units = [*_units(place), f"{HERE}/transfers.cc"]
    objects = [f"objects/{os.path.basename(unit)}.o" for unit in units]
    with open(f"{place}/build.ninja", "w", encoding="utf-8") as file:
        file.write(RULES + "".join(f"build {made}: cc {unit}\n" for made, unit in zip(objects, units)) +
                   f"build transfers: link {' '.join(objects)}\nbuild silent: c {HERE}/silent.c\n")
    subprocess.run(["ninja", "-C", place], check=True)
    for program in ("transfers", "silent"):
        os.link(f"{place}/{program}", f"{target}/{program}")
