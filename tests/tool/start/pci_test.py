#!/usr/bin/env python3
"""softverbs run --pci: what programs see of the PCI functions of devices, and of GPUs that need not exist."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import TEMPORARY, expect, softverbs

BUS = "/sys/bus/pci/devices"
SWITCH = "pci0000:17/0000:17:01.0/0000:18:00.0"
TWO = ("--devices", "2", "--pci", f"{SWITCH},numa=0,speed=32GT/s,width=16,vendor=0x15b3,device=0x1021,subdevice=0x41", "--pci", "0000:3b:00.0")
LIBC = "import ctypes, os; libc = ctypes.CDLL(None); libc.realpath.restype = ctypes.c_char_p\n" \
       "def real(path): return (libc.realpath(path.encode(), ctypes.create_string_buffer(4096)) or b'').decode()\n"


def shell(script, *options, **more):
    return expect(softverbs("run", *options, "--", "sh", "-c", script, **more)).stdout.decode()


def python(source, *options):
    return expect(softverbs("run", *options, "--", cases.PYTHON, "-c", LIBC + source)).stdout.decode()


def device_leads_to_the_function():
    assert shell("cd /; for i in 0 1; do readlink /sys/class/infiniband/soft$i /sys/class/infiniband/soft$i/device; done", *TWO) == (
        f"../../devices/{SWITCH}/infiniband/soft0\n../../../0000:18:00.0\n"
        "../../devices/pci0000:3b/0000:3b:00.0/infiniband/soft1\n../../../0000:3b:00.0\n")
    assert python("for path in ('class/infiniband/soft0', 'class/infiniband/soft0/device', 'class/infiniband/soft0/device/subsystem', "
                  "'class/infiniband_verbs/uverbs1/device', 'class/infiniband/soft1/../..'): print(real('/sys/' + path))", *TWO).split() == [
        f"/sys/devices/{SWITCH}/infiniband/soft0", f"/sys/devices/{SWITCH}", "/sys/bus/pci", "/sys/devices/pci0000:3b/0000:3b:00.0",
        "/sys/devices/pci0000:3b/0000:3b:00.0"]


def a_function_has_the_files_of_a_kernel():
    wanted = {"class": "0x020000", "vendor": "0x15b3", "device": "0x1021", "subsystem_vendor": "0x15b3", "subsystem_device": "0x0041",
              "revision": "0x00", "numa_node": "0", "current_link_speed": "32.0 GT/s PCIe", "current_link_width": "16",
              "max_link_speed": "32.0 GT/s PCIe", "max_link_width": "16", "infiniband/soft0/node_type": "1: CA",
              "infiniband_verbs/uverbs0/ibdev": "soft0"}
    for place in (f"/sys/devices/{SWITCH}", f"{BUS}/0000:18:00.0", "/sys/class/infiniband/soft0/device"):
        found = shell(f"cd {place} && for name in {' '.join(wanted)}; do cat $name; done", *TWO)
        assert found.splitlines() == list(wanted.values()), found
    assert "PCI_SLOT_NAME=0000:18:00.0\n" in shell(f"cat /sys/devices/{SWITCH}/uevent", *TWO)
    assert shell("ls /sys/class/infiniband/soft0/device/net", *TWO) == "lo\n"
    assert shell("cat /sys/class/infiniband/soft1/device/vendor; ls /sys/class/infiniband/soft1/device | grep link_ || true", *TWO) == "0x0000\n"
    assert shell("cat /sys/class/infiniband/soft0/device/class", *TWO, "--link-layer", "ib") == "0x020700\n"


def a_configuration_space_agrees_with_the_files():
    head = python(f"print(open('{BUS}/0000:18:00.0/config', 'rb').read().hex(), open('{BUS}/0000:17:01.0/config', 'rb').read().hex())", *TWO)
    function, bridge = map(bytes.fromhex, head.split())
    assert len(function) == len(bridge) == 256 and function[:4].hex() == "b3152110" and function[8:12].hex() == "00000002"
    assert function[0x2c:0x30].hex() == "b3154100" and function[function[0x34] + 0x12] == 5 | 0 << 4 and function[function[0x34]] == 0x10, function.hex()
    assert bridge[9:12].hex() == "000406" and bridge[0x0e] == 1 and bridge[0x18:0x1b].hex() == "171818", bridge.hex()


def the_processors_are_those_that_were_named():
    assert shell("cat /sys/class/infiniband/soft0/device/local_cpulist /sys/class/infiniband/soft0/device/local_cpus",
                 "--pci", "0000:18:00.0,cpus=0-3+8-11+40") == "0-3,8-11,40\n00000100,00000f0f\n"


def lists_have_the_machine_s_functions_too():
    mine = os.listdir(BUS) if os.path.exists(BUS) else []
    assert shell(f"ls {BUS}", *TWO).split() == sorted([*mine, "0000:17:01.0", "0000:18:00.0", "0000:3b:00.0"])
    assert {"0000:17", "0000:18", "0000:3b"}.issubset(shell("ls /sys/class/pci_bus", *TWO).split())
    for name in mine[:3]:
        assert shell(f"cat {BUS}/{name}/class && ls {BUS}/{name}/", *TWO) == subprocess.run(
            ["sh", "-c", f"cat {BUS}/{name}/class && ls {BUS}/{name}/"], capture_output=True, check=True).stdout.decode()


def a_root_of_the_machine_keeps_its_own():
    if not os.path.exists("/sys/devices/pci0000:00") or os.path.exists("/sys/devices/pci0000:00/0000:00:1e.7"):
        raise cases.Skip("the machine has no root bus 0000:00 with a free place")
    options = ("--pci", "pci0000:00/0000:00:1e.7")
    assert shell("ls /sys/devices/pci0000:00; cat /sys/devices/pci0000:00/0000:00:1e.7/class", *options).split() == [
        *sorted(os.listdir("/sys/devices/pci0000:00")), "0x020000"]
    assert python("print(real('/sys/class/pci_bus/0000:00/../../0000:00:1e.7'))", *options) == "/sys/devices/pci0000:00/0000:00:1e.7\n"


def nothing_of_pci_changes_where_no_function_was_asked_for():
    for path in (BUS, "/sys/class/pci_bus", "/sys/devices"):
        alone = subprocess.run(["ls", "-l", path], capture_output=True, check=False)
        under = softverbs("run", "--", "ls", "-l", path)
        assert (alone.stdout, alone.returncode) == (under.stdout, under.returncode), cases.told(under)
    assert shell("readlink /sys/class/infiniband/soft0/device") == "../../../soft0\n"


def a_gpu_need_not_exist():
    options = (*TWO, "--pci", "gpu=0000:18:00.1,numa=0", "--pci", "gpu=0000:86:00.0,vendor=0x1002,device=0x74a1")
    assert python("print(real('/sys/class/pci_bus/0000:18/../../0000:18:00.1'), real('/sys/class/pci_bus/0000:86/../../0000:86:00.0'))",
                  *options).split() == ["/sys/devices/pci0000:17/0000:17:01.0/0000:18:00.1", "/sys/devices/pci0000:86/0000:86:00.0"]
    assert shell(f"cd {BUS}; cat 0000:18:00.1/vendor 0000:18:00.1/class 0000:86:00.0/vendor 0000:86:00.0/device; ls /sys/class/infiniband",
                 *options) == "0x10de\n0x030200\n0x1002\n0x74a1\nsoft0\nsoft1\n"


def the_counters_are_there():
    found = shell(f"cat /sys/devices/{SWITCH}/infiniband/soft0/ports/1/counters/port_xmit_packets", *TWO)
    assert re.fullmatch(r"\d+\n", found), found


def a_device_may_have_none():
    assert shell("readlink /sys/class/infiniband/soft0/device /sys/class/infiniband/soft1/device", "--devices", "2", "--pci", "none",
                 "--pci", "0000:18:00.0") == "../../../soft0\n../../../0000:18:00.0\n"


def the_variable_and_a_configuration_say_the_same():
    look = "readlink /sys/class/infiniband/soft0/device"
    assert shell(look, env={"SOFTVERBS_PCI": "0000:18:00.0,numa=0"}) == "../../../0000:18:00.0\n"
    assert shell(look, "--pci", "0000:19:00.0", env={"SOFTVERBS_PCI": "0000:18:00.0"}) == "../../../0000:19:00.0\n"
    with open(f"{TEMPORARY}/pci.conf", "w", encoding="ascii") as file:
        file.write("pci = 0000:1a:00.0\n")
    assert shell(look, env={"SOFTVERBS_CONFIG": f"{TEMPORARY}/pci.conf"}) == "../../../0000:1a:00.0\n"


def a_profile_has_it():
    def profile(text):
        with open(f"{TEMPORARY}/card.profile", "w", encoding="ascii") as file:
            file.write(text)
        return "--profile", f"{TEMPORARY}/card.profile"
    look = "cat /sys/class/infiniband/soft0/device/vendor; readlink /sys/class/infiniband/soft0/device"
    options = profile("pci = pci0000:17/0000:17:01.0/0000:18:00.0,vendor=0x15b3,0000:18:00.1,vendor=0x15b3\n")
    assert shell(look, *options) == "0x15b3\n../../../0000:18:00.0\n"
    assert shell("readlink /sys/class/infiniband/soft1/device", "--devices", "2", *options) == "../../../0000:18:00.1\n"
    assert shell(look, "--pci", "0000:20:00.0", *options) == "0x0000\n../../../0000:20:00.0\n"
    expect(softverbs("run", *profile("pci = 0000:18\n"), "true"), status=2, err=None)


def a_run_within_a_run_has_the_function_too():
    """As where a program that starts others, such as mpirun, starts softverbs again."""
    look = "readlink /sys/class/infiniband/*/device"
    for options, address in ((("--pci", "0000:18:00.0"), "0000:18:00.0"), (("--profile", "efa"), "0000:a0:1b.0")):
        for again in ((), options):
            done = softverbs("run", *options, "--", cases.SOFTVERBS, "run", *again, "--", "sh", "-c", look)
            expect(done, out=f"../../../{address}\n".encode(), err=None)


def an_efa_has_its_driver():
    with open(f"{TEMPORARY}/amazon.profile", "w", encoding="ascii") as file:
        file.write("driver = efa\n")
    options = ("--profile", f"{TEMPORARY}/amazon.profile", "--pci", "0000:00:06.0", "--pci", "gpu=0000:00:07.0")
    assert python("print(real('/sys/class/infiniband/soft0/device/driver'), real('/sys/bus/pci/drivers/efa/0000:00:06.0'))", *options).split() == [
        "/sys/bus/pci/drivers/efa", "/sys/devices/pci0000:00/0000:00:06.0"]
    mine = os.listdir("/sys/bus/pci/drivers") if os.path.exists("/sys/bus/pci/drivers") else []
    assert shell("ls /sys/bus/pci/drivers/efa; ls /sys/bus/pci/drivers", *options).split() == ["0000:00:06.0", *sorted([*mine, "efa"])]
    shell("! test -e /sys/class/infiniband/soft0/device/driver", *TWO)


def a_tree_of_sysfs_has_it():
    tree = f"{TEMPORARY}/sys"
    expect(softverbs("sysfs", "--once", tree, env={"SOFTVERBS_PCI": f"{SWITCH},numa=0"}))
    assert os.path.realpath(f"{tree}/class/infiniband/soft0/device") == os.path.realpath(f"{tree}/devices/{SWITCH}")
    assert os.path.realpath(f"{tree}/bus/pci/devices/0000:18:00.0") == os.path.realpath(f"{tree}/devices/{SWITCH}")
    with open(f"{tree}/class/infiniband/soft0/device/class", encoding="ascii") as file:
        assert file.read() == "0x020000\n"


def mistakes_are_refused_with_a_cure():
    machine = os.listdir(BUS)[:1] if os.path.exists(BUS) else []
    for text, words in {
        "0000:18": "not a PCI address. One is 0000:18:00.0", "18:00.0": "not a PCI address", "0000:18:20.0": "not a PCI address", "0000:18:00.8": "not a PCI address",
        ",": "names no function", "0000:1G:00.0": "not a PCI address", "pci0000:17": "not a PCI address", "pci0000:17/18": "not a PCI address", "numa=0": "Write the address first",
        "0000:18:00.0,numa=x": "numa is the number of a NUMA node", "0000:18:00.0,numa=-2": "numa is", "0000:18:00.0,colour=1":
        "the keys are numa, cpus, speed, width, vendor", "0000:18:00.0,gpu=0000:18:00.0": "0000:18:00.0 is given twice",
        "0000:18:00.0,numa=0,numa=1": "numa is given twice for 0000:18:00.0", "0000:18:00.0,speed=7GT/s": "speed is 2.5GT/s, 5GT/s, 8GT/s",
        "0000:18:00.0,width=0": "width is a number of lanes", "0000:18:00.0,cpus=3-1": "cpus is a list", "0000:18:00.0,cpus=1+": "cpus is a list",
        "0000:18:00.0,vendor=0xffff": "vendor is a number below 0xffff", "0000:18:00.0,0000:19:00.0": "2 PCI addresses for 1 device; --devices 2 makes",
        "pci0000:17/0000:17:01.0/0000:18:00.0,gpu=pci0000:17/0000:17:02.0/0000:18:01.0": "bus 0000:18 is at two places",
        "0000:18:00.0,gpu=pci0000:18/0000:18:00.0/0000:19:00.0": "0000:18:00.0 can't be a bridge in the path of 0000:19:00.0",
        "pci0000:01" + "".join(f"/0000:0{bus}:00.0" for bus in range(1, 10)): "at most 7 functions",
        **{name: f"{name} is a device of this machine" for name in machine},
    }.items():
        done = expect(softverbs("run", "--pci", text, "true"), status=2, err=None)
        assert words in done.stderr.decode() and done.stderr.count(b"\n") == 1, (text, done.stderr)
    done = expect(softverbs("run", "true", env={"SOFTVERBS_PCI": "0000:18"}), status=2, err=None)
    assert b"not a PCI address" in done.stderr, done.stderr


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
