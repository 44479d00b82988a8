#!/usr/bin/env python3
"""Eight devices beside eight GPUs that need not exist (softverbs run --pci): which adapter programs take for the nearest.

hwloc's lstopo and UCX's library run as they are, where they are installed; nearest.c makes the calls of NCCL, torchcomms and Monarch. The machine has
two nodes with two switches each; below a switch are two devices and two GPUs. docs/evidence/gpu.md says which of them there are."""
import os
import shutil
import sys
from xml.etree import ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import Skip, expect, softverbs

PROBE = os.path.join(cases.BUILD, "tests", "tool", "nearest")
SWITCHES = 4


def address(switch, place):
    """Places 0 and 1 of a switch have devices, 2 and 3 GPUs."""
    return f"0000:{switch * 0x40 + 0x13 + place:02x}:00.0"


def path(switch, place):
    root = switch * 0x40 + 0x10
    return f"pci0000:{root:02x}/0000:{root:02x}:01.0/0000:{root + 1:02x}:00.0/0000:{root + 2:02x}:0{place}.0/{address(switch, place)}"


# The number of a device says nothing of its switch.
PLACES = [(number * 3 % SWITCHES, number // SWITCHES) for number in range(2 * SWITCHES)]
GPUS = [(switch, place) for switch in range(SWITCHES) for place in (2, 3)]
OPTIONS = ["--devices", str(len(PLACES)),
           *(word for switch, place in PLACES for word in ("--pci", f"{path(switch, place)},numa={switch // 2},speed=32GT/s,width={16 if place else 8}")),
           *(word for switch, place in GPUS for word in ("--pci", f"gpu={path(switch, place)},numa={switch // 2},speed=32GT/s,width=16"))]


def _kinds(program):
    """{(switch of the GPU, switch of the device): kinds, as a set}; the speed of a device is asserted."""
    found = {}
    text = expect(softverbs("run", *OPTIONS, "--", PROBE, program, *(address(*gpu) for gpu in GPUS))).stdout.decode()
    lines = [line.split() for line in text.splitlines()]
    assert len(lines) == len(GPUS) * len(PLACES), text
    for gpu, device, kind, speed in lines:
        switch, place = PLACES[int(device.removeprefix("soft"))]
        owner = next(one for one in GPUS if address(*one) == gpu)[0]
        found.setdefault((owner, switch), set()).add(kind)
        assert float(speed) == 32 * (16 if place else 8) or program != "torchcomms" and float(speed) == 32 * 8, (device, speed)
    return found


def _expect_kinds(program, switch, node, far):
    for (gpu, device), found in _kinds(program).items():
        assert found == {switch if gpu == device else node if gpu // 2 == device // 2 else far}, (program, gpu, device, found)


def nccl_finds_the_two_of_the_switch():
    _expect_kinds("nccl", "PIX", "PHB", "SYS")


def torchcomms_finds_the_two_of_the_switch():
    _expect_kinds("torchcomms", "PXB", "NODE", "SYS")


def monarch_finds_the_two_of_the_switch():
    _expect_kinds("monarch", "PIX", "PHB", "SYS")


def without_pci_functions_no_device_is_near():
    """NCCL hangs such a device on the first processor, and Monarch leaves it out."""
    for program, kind in (("nccl", "none"), ("monarch", "none"), ("torchcomms", "SYS")):
        text = expect(softverbs("run", "--pci", "none", "--pci", "gpu=0000:18:00.0,numa=0", "--", PROBE, program, "0000:18:00.0")).stdout.decode()
        assert text == f"0000:18:00.0 soft0 {kind} 1e+09\n", text


def lstopo_shows_the_devices_below_their_switches():
    if not shutil.which("lstopo-no-graphics"):
        raise Skip("hwloc-nox is not installed")
    text = expect(softverbs("run", *OPTIONS, "--", "lstopo-no-graphics", "--of", "xml"), err=None).stdout.decode()
    bridges = {}

    def walk(node, above):
        if node.get("type") == "PCIDev":
            above = [*above, node.get("pci_busid")]
        for each in [node] if node.get("type") == "OSDev" else []:
            bridges[each.get("name")] = above
        for child in node.findall("object"):
            walk(child, [*above, node.get("bridge_pci") or node.get("gp_index")] if node.get("type") == "Bridge" else above)
    root = ElementTree.fromstring(text[text.index("<topology"):])
    for top in root.findall("object"):
        walk(top, [])
    gpus = {node.get("pci_busid") for node in root.iter("object") if (node.get("pci_type") or "").startswith("0302")}
    assert gpus == {address(*gpu) for gpu in GPUS}, gpus
    for number, (switch, place) in enumerate(PLACES):
        assert bridges[f"soft{number}"][-1] == address(switch, place), (number, bridges)
        same = [other for other in range(len(PLACES)) if other != number and bridges[f"soft{other}"][1:3] == bridges[f"soft{number}"][1:3]]
        assert [PLACES[other][0] for other in same] == [switch], (number, bridges)


UCX = """
import ctypes, sys
ucs = ctypes.CDLL("libucs.so.0")
class Distance(ctypes.Structure):
    _fields_ = [("latency", ctypes.c_double), ("bandwidth", ctypes.c_double)]
def device(name):
    found = ctypes.c_uint8()
    assert not ucs.ucs_topo_find_device_by_bdf_name(name.encode(), ctypes.byref(found))
    return found
count = int(sys.argv[1])
for gpu in sys.argv[2 + count:]:
    for nic in sys.argv[2:2 + count]:
        distance = Distance()
        assert not ucs.ucs_topo_get_distance(device(gpu), device(nic), ctypes.byref(distance))
        print(gpu, nic, distance.latency)
"""


def ucx_finds_the_two_of_the_switch():
    if not any(os.path.exists(f"{place}/libucs.so.0") for place in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")):
        raise Skip("libucx0 is not installed")
    near = {address(*gpu): {address(*device) for device in PLACES if device[0] == gpu[0]} for gpu in GPUS}
    done = softverbs("run", *OPTIONS, "--", cases.PYTHON, "-c", UCX, str(len(PLACES)), *(address(*place) for place in PLACES), *near)
    if b"undefined symbol" in done.stderr:
        raise Skip("this release of UCX has other functions")
    lines = [line.split() for line in expect(done, err=None).stdout.decode().splitlines()]
    for gpu, devices in near.items():
        least = min(float(latency) for one, _, latency in lines if one == gpu)
        assert {nic for one, nic, latency in lines if one == gpu and float(latency) == least} == devices, (gpu, lines)


def ucx_sends_most_over_the_wider_link():
    """A real choice, of an endpoint: the first of the lanes for bulk data is on the device with the faster PCI link, whichever that is."""
    if not shutil.which("ucx_info"):
        raise Skip("ucx-utils is not installed")
    slow, fast = "speed=2.5GT/s,width=1", "speed=32GT/s,width=16"
    for links, wanted in (((slow, fast), "soft1"), ((fast, slow), "soft0")):
        options = ["--devices", "2", *(word for turn, link in enumerate(links) for word in ("--pci", f"0000:{0x18 + turn:x}:00.0,{link}"))]
        text = expect(softverbs("run", *options, "--", "ucx_info", "-e", "-u", "t", env={"UCX_TLS": "rc_v"}), err=None).stdout.decode()
        lanes = [line for line in text.splitlines() if "rma_bw#0" in line]
        assert len(lanes) == 1 and f"rc_verbs/{wanted}:1" in lanes[0], text


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
