#!/usr/bin/env python3
"""The paths that softverbs run provides: programs see the kernel's RDMA paths, and every other path as it is."""
import ipaddress
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import PYTHON, Skip, TEMPORARY, expect, python, run, softverbs

SYSFS = "/sys/class/infiniband"


def the_device_node_is_a_character_device():
    expect(run("stat", "-c", "%F", "/dev/infiniband/uverbs0"), out=b"character special file\n")
    expect(run("stat", "-L", "-c", "%F %t:%T", "/dev/infiniband/uverbs0"), out=b"character special file 1:3\n")
    for test in "-c", "-r", "-w":
        expect(run("test", test, "/dev/infiniband/uverbs0"))


def the_device_node_opens_for_reading_and_writing():
    python("open('/dev/infiniband/uverbs0', 'r+b', buffering=0).write(b'x')")


def a_device_node_that_does_not_exist_is_not_there():
    assert python("import os; print(os.path.lexists('/dev/infiniband/uverbs1'), os.path.lexists('/dev/infiniband/rdma_cn'))") \
        == "False False\n"


def directories_are_listed():
    expect(run("ls", SYSFS), out=b"soft0\n")
    expect(run("ls", "/dev/infiniband"), out=b"rdma_cm\nuverbs0\n")
    expect(run("ls", f"{SYSFS}_verbs"), out=b"abi_version\nuverbs0\n")
    for option in ("-l", "-lR", "-laR"):
        expect(run("ls", option, f"{SYSFS}/", "/dev/infiniband", f"{SYSFS}_verbs/uverbs0/"))
    found = expect(run("find", "-L", f"{SYSFS}/soft0/ports", "-name", "gids")).stdout.decode()
    assert found == f"{SYSFS}/soft0/ports/1/gids\n", found


def shells_expand_patterns():
    expect(run("bash", "-c", "echo /sys/class/infiniband/*/ports/*/gids/0 /dev/infiniband/*"),
           out=f"{SYSFS}/soft0/ports/1/gids/0 /dev/infiniband/rdma_cm /dev/infiniband/uverbs0\n".encode())


def a_shell_changes_into_it():
    expect(run("bash", "-c", f"cd {SYSFS}/soft0/ports/1 && cat link_layer"), out=b"Ethernet\n")


def every_file_reads_as_the_kernel_writes_it():
    rules = {
        "node_type": "1: CA", "node_guid": r"[0-9a-f]{4}(:[0-9a-f]{4}){3}", "sys_image_guid": r"[0-9a-f]{4}(:[0-9a-f]{4}){3}",
        "fw_ver": r"[\d.]+", "hca_type": r"\S+", "board_id": r"\S+", "node_desc": "soft0", "hw_rev": r"\S+",
        "ports/1/state": "4: ACTIVE", "ports/1/phys_state": "5: LinkUp", "ports/1/link_layer": "Ethernet",
        "ports/1/rate": r"\d+ Gb/sec \(4X EDR\)", "ports/1/lid": "0x0", "ports/1/pkeys/0": "0xffff",
        "ports/1/gids/0": r"fe80(:[0-9a-f]{4}){7}", "ports/1/gids/15": r"0000(:0000){7}",
        "ports/1/gid_attrs/types/0": "RoCE v2", "ports/1/gid_attrs/ndevs/0": "lo",
        "ports/1/counters/link_downed": "0", "device/numa_node": "-1", "device/vendor": "0x0000", "device/device": "0x0000",
        "device/local_cpus": r"[0-9a-f]{8}(,[0-9a-f]{8})*", "device/infiniband_verbs/uverbs0/ibdev": "soft0",
    }
    text = python("import sys\nfor name in sys.argv[1:]:\n print(name, open(f'/sys/class/infiniband/soft0/{name}').read(), sep='=',"
                  " end='')", *rules)
    found = dict(line.split("=", 1) for line in text.splitlines())
    for name, rule in rules.items():
        assert re.fullmatch(rule, found[name]), (name, found[name])
    assert not found["node_guid"].startswith("0000:0000")


def files_agree_with_what_the_library_tells():
    need = "/usr/bin/ibv_devinfo"
    if not os.path.exists(need):
        raise Skip(f"{need} is not installed")
    told = expect(run(need, "-v")).stdout.decode()
    files = {"fw_ver": r"fw_ver:\s+(\S+)", "node_guid": r"node_guid:\s+(\S+)", "sys_image_guid": r"sys_image_guid:\s+(\S+)",
             "board_id": r"board_id:\s+(\S+)", "ports/1/cap_mask": r"port_cap_flags:\s+(\S+)",
             "ports/1/link_layer": r"link_layer:\s+(\S+)"}
    for name, pattern in files.items():
        shown = expect(run("cat", f"{SYSFS}/soft0/{name}")).stdout.decode().strip()
        assert re.search(pattern, told).group(1) == shown, (name, shown, told)
    assert re.search(r"state:\s+PORT_ACTIVE \(4\)", told) and re.search(r"phys_state:\s+LINK_UP \(5\)", told), told
    assert re.search(r"active_width:\s+4X \(2\)", told) and re.search(r"active_speed:\s+25.0 Gbps \(32\)", told), told
    gids = re.findall(r"GID\[ *(\d+)\]:\s+([0-9a-f:.]+)(, RoCE v2)?", told)
    assert len(gids) >= 2, told
    for index, gid, kind in gids:
        shown, = expect(run("cat", f"{SYSFS}/soft0/ports/1/gids/{index}")).stdout.decode().split()
        assert ipaddress.IPv6Address(gid) == ipaddress.IPv6Address(shown), (gid, shown)
        assert kind and expect(run("cat", f"{SYSFS}/soft0/ports/1/gid_attrs/types/{index}"), out=b"RoCE v2\n")


def processors_are_those_of_the_machine():
    text = expect(run("cat", f"{SYSFS}/soft0/device/local_cpus")).stdout.decode()
    assert bin(int(text.replace(",", ""), 16)).count("1") == os.sysconf("SC_NPROCESSORS_CONF"), text


def unused_gids_have_no_type():
    """The files of unused GIDs are as with a kernel: there, open, and can't be read."""
    assert python("import errno, os\n"
                  "port = '/sys/class/infiniband/soft0/ports/1/'\n"
                  "def read(name):\n"
                  "    with open(port + 'gid_attrs/' + name) as file:\n"
                  "        try: return file.read().strip()\n"
                  "        except OSError as error: return errno.errorcode[error.errno]\n"
                  "print(len(os.listdir(port + 'gids')), read('types/1'), read('types/15'), read('ndevs/15'))"
                  ) == "16 RoCE v2 EINVAL EINVAL\n"


def node_and_device_lead_to_each_other():
    expect(run("cat", f"{SYSFS}_verbs/uverbs0/ibdev"), out=b"soft0\n")
    expect(run("cat", f"{SYSFS}_verbs/uverbs0/device/infiniband/soft0/node_type"), out=b"1: CA\n")
    expect(run("readlink", f"{SYSFS}/soft0"), out=b"../../devices/softverbs/soft0/infiniband/soft0\n")


def resolved_paths_lead_there():
    if not os.path.exists("/sys/class"):
        raise Skip("no sysfs is mounted, whose own directories lie before ours in the path")
    path = expect(run("realpath", f"{SYSFS}/soft0/node_type")).stdout.decode().strip()
    assert path == "/sys/devices/softverbs/soft0/infiniband/soft0/node_type"  # resolved by the program itself
    expect(run("cat", path), out=b"1: CA\n")
    expect(run("cat", f"{path}/../../../device"), err=None, status=1)  # a file is not a directory
    expect(run("cat", f"{os.path.dirname(path)}/../../device"), out=b"0x0000\n")  # how UCX looks for the PCI ids


def there_are_as_many_devices_as_were_asked_for():
    expect(softverbs("run", "--devices", "3", "ls", SYSFS, "/dev/infiniband"),
           out=f"/dev/infiniband:\nrdma_cm\nuverbs0\nuverbs1\nuverbs2\n\n{SYSFS}:\nsoft0\nsoft1\nsoft2\n".encode())
    guids = expect(softverbs("run", "--devices", "3", "sh", "-c", f"cat {SYSFS}/*/node_guid")).stdout.split()
    assert len(set(guids)) == 3, guids
    expect(softverbs("run", "--devices", "0", "ls", SYSFS), out=b"")


def descriptors_of_directories_work():
    source = """
import os
top = os.open('/sys/class/infiniband', os.O_RDONLY | os.O_DIRECTORY)
print(os.listdir(top), os.stat('soft0/node_type', dir_fd=top).st_size, os.readlink('soft0', dir_fd=top)[:6])
print(os.read(os.open('soft0/node_type', os.O_RDONLY, dir_fd=top), 10), os.access('soft0', os.R_OK, dir_fd=top))
print(os.stat('/dev/infiniband/uverbs0', dir_fd=top).st_rdev, [entry.name for entry in os.scandir('/sys/class/infiniband/')])
"""
    text = python(source)
    assert text == "['soft0'] 6 ../../\nb'1: CA\\n' True\n259 ['soft0']\n", text


def repeated_slashes_count_as_one():
    expect(run("cat", "//sys///class//infiniband//soft0//node_type"), out=b"1: CA\n")
    expect(run("stat", "-c", "%F", "/dev//infiniband//uverbs0"), out=b"character special file\n")
    expect(run("stat", "-c", "%F", "/dev/infiniband/"), out=b"directory\n")


def other_paths_are_untouched():
    os.makedirs(f"{TEMPORARY}/sys/class/infiniband")
    paths = ["/sys/class/infiniband_mad", "/sys/class/infinibandx", "/sys/class/infiniban", "/dev/infinibandx", "/sys/class/net",
             "/dev/null", "/dev", "/sys", "/", "", "sys/class/infiniband", f"{TEMPORARY}/sys/class/infiniband", "/etc/passwd",
             "/dev/shm", "/sys/class", "/s", "/d", "//", "/dev/" + "x" * 5000, f"{SYSFS}/" + "x" * 5000]
    source = """
import os, sys
for path in sys.stdin.read().split('\\0'):
    for call in (os.stat, os.lstat, lambda p: os.listdir(p) and 0, os.readlink, lambda p: os.open(p, os.O_PATH) and 0,
                 lambda p: os.access(p, os.R_OK)):
        try: print(path[:40], getattr(call(path), 'st_ino', 'fine'))
        except OSError as error: print(path[:40], error.errno)
"""
    alone, under = (subprocess.run([*command, PYTHON, "-c", source], input="\0".join(paths).encode(), capture_output=True,
                                   env=cases.environment(), check=False, cwd="/")
                    for command in ([], [cases.SOFTVERBS, "run", "--"]))
    assert alone.stdout == under.stdout and alone.stdout.count(b"\n") == 6 * len(paths), (alone, under)


def no_paths_means_none():
    real = os.path.exists("/dev/infiniband/uverbs0")
    done = softverbs("run", "--no-paths", "test", "-e", "/dev/infiniband/uverbs0")
    assert (done.returncode == 0) == real, cases.told(done)


def every_way_of_asking_leads_there():
    probe = os.path.join(cases.BUILD, "tests", "tool", "ask_paths")
    text = expect(run(probe)).stdout.decode()
    assert text.count(" yes\n") == text.count("\n") > 44, text
    if not os.path.exists(SYSFS):
        alone = subprocess.run([probe], capture_output=True, env=cases.environment(), check=False).stdout.decode()
        assert " yes" not in alone and alone.count("\n") == text.count("\n"), alone


def a_sanitized_program_starts():
    with open(f"{TEMPORARY}/sane.c", "w", encoding="ascii") as file:
        file.write('#include <unistd.h>\nint main(void) { return access("/dev/infiniband/uverbs0", R_OK | W_OK) ? 1 : 0; }\n')
    compiler = shutil.which("cc")
    if not compiler:
        raise Skip("there is no C compiler")
    for sanitizer in ("address", "undefined"):
        built = subprocess.run([compiler, f"-fsanitize={sanitizer}", "-o", f"{TEMPORARY}/sane", f"{TEMPORARY}/sane.c"],
                               capture_output=True, check=False)
        if built.returncode:
            raise Skip(f"cc has no -fsanitize={sanitizer}")
        if subprocess.run([f"{TEMPORARY}/sane"], capture_output=True, check=False).returncode not in (0, 1):
            raise Skip(f"programs with -fsanitize={sanitizer} do not run here")
        expect(run(f"{TEMPORARY}/sane"))


def an_ordinary_user_has_them_too():
    tool = cases.installed(f"{TEMPORARY}/shared")
    expect(softverbs("run", "cat", f"{SYSFS}/soft0/node_type", tool=tool, user="nobody"), out=b"1: CA\n")
    for test in "-c", "-r", "-w":
        expect(softverbs("run", "test", test, "/dev/infiniband/uverbs0", tool=tool, user="nobody"))


def a_program_that_gives_up_root_keeps_them():
    tool = cases.installed(f"{TEMPORARY}/kept")
    expect(softverbs("run", "--", *cases.identity("nobody"), "cat", f"{SYSFS}/soft0/node_type", tool=tool), out=b"1: CA\n")


def a_damaged_tree_is_repaired():
    tree, node = _tree(12), "class/infiniband/soft11/node_desc"
    os.unlink(f"{tree}/{node}")
    assert _tree(12) == tree
    with open(f"{tree}/{node}", encoding="ascii") as file:
        assert file.read() == "soft11\n"
    shutil.rmtree(tree, ignore_errors=True)


def _tree(devices):
    done = softverbs("run", "--devices", str(devices), "sh", "-c", "echo $SOFTVERBS_PATHS", env={"XDG_RUNTIME_DIR": None})
    return expect(done).stdout.decode().strip()


def names_of_devices_name_no_files_elsewhere():
    for name in (f"..{'/..' * 8}{TEMPORARY}/escaped", ".hidden", "a/b", "esc\"x"):
        done = run("sh", "-c", f"ls {SYSFS}", env={"SOFTVERBS_DEVICES": f"{name},fine_1.2-3", "XDG_RUNTIME_DIR": None})
        expect(done, 2, b"", [name.encode()[:40]])
        assert not os.path.exists(f"{TEMPORARY}/escaped"), done
    done = run("sh", "-c", f"ls {SYSFS}", env={"SOFTVERBS_DEVICES": "fine_1.2-3", "XDG_RUNTIME_DIR": None})
    assert expect(done).stdout == b"fine_1.2-3\n", done


def a_tree_that_others_may_write_is_refused():
    first = _tree(13)
    os.chmod(first, 0o777)
    second = _tree(13)
    shutil.rmtree(first, ignore_errors=True)
    assert os.path.dirname(second) != os.path.dirname(first), (first, second)
    shutil.rmtree(second, ignore_errors=True)  # another run of these tests may remove it, too


def a_tree_of_another_user_is_refused():
    if os.geteuid() != 0:
        raise Skip("only root can make another user's files")
    first = _tree(14)
    os.chown(first, 65534, 65534)
    second = _tree(14)
    shutil.rmtree(first, ignore_errors=True)
    assert second != first, (first, second)
    shutil.rmtree(second)


def many_at_once_make_one_tree():
    started = [subprocess.Popen([cases.SOFTVERBS, "run", "--devices", "15", "sh", "-c",
                                 f"echo $SOFTVERBS_PATHS; cat {SYSFS}/soft14/ports/1/state"],
                                stdout=subprocess.PIPE, env=cases.environment()) for _ in range(20)]
    outputs = {process.communicate()[0] for process in started}
    assert len(outputs) == 1, outputs
    tree, state = outputs.pop().decode().splitlines()
    assert state == "4: ACTIVE"
    shutil.rmtree(tree, ignore_errors=True)
    assert not [name for name in os.listdir(os.path.dirname(tree)) if name.startswith(".softverbs-paths-")]


def realpath_gives_the_kernel_s_paths():
    """findings/newcomer.md: NCCL printed a path of ours. The path that realpath gives leads to the same file again."""
    source = ("import ctypes, os; libc = ctypes.CDLL(None); libc.realpath.restype = ctypes.c_char_p\n"
              "for path in ('/sys/class/infiniband/soft0', '/sys/class/infiniband/soft0/device', '/dev/infiniband/uverbs0', '/usr'):\n"
              "    found = libc.realpath(path.encode(), ctypes.create_string_buffer(4096)).decode(); print(found, os.path.exists(found))")
    lines = [line.split() for line in python(source).splitlines()]
    assert lines[0] == ["/sys/devices/softverbs/soft0/infiniband/soft0", "True"], lines
    assert lines[1][0].startswith("/sys/devices/softverbs/") and all(exists == "True" and "paths-" not in path for path, exists in lines), lines
    assert "softverbs" not in lines[2][0] and lines[3][0] == os.path.realpath("/usr"), lines
    assert b"-paths-" not in expect(run("readlink", f"{SYSFS}/soft0")).stdout


def trees_that_nobody_uses_are_removed():
    """findings/newcomer.md, 20: one stayed for each set of options. In a separate /dev/shm."""
    script = """mount -t tmpfs none /dev/shm
        name=softverbs-$(id -u)-$(stat -Lc %i /proc/self/ns/user)-paths-
        for i in $(seq 10 39); do mkdir -m 755 /dev/shm/${name}z$i; touch -d "2 days ago" /dev/shm/${name}z$i; done
        mkdir /dev/shm/other; touch -d '2 days ago' /dev/shm/other
        SOFTVERBS_PATHS=/dev/shm/${name}z11 sleep 60 & used=$!
        until grep -q paths-z11 /proc/$used/environ; do sleep 0.1; done
        SOFTVERBS_DEVICES=2 "$0" run true; kill $used; ls /dev/shm"""
    options = ["--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--mount"]
    done = subprocess.run(["unshare", *options, "sh", "-c", script, cases.SOFTVERBS], capture_output=True, check=False, env=cases.environment())
    if b"mount" in done.stderr or b"unshare" in done.stderr:
        raise cases.Skip("this machine gives no mounts of its own")
    trees = [name for name in done.stdout.decode().split() if "-paths-" in name]
    assert len(trees) == 2 and sum(name.endswith("-paths-z11") for name in trees) == 1 and b"other" in done.stdout, cases.told(done)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
