#!/usr/bin/env python3
"""softverbs doctor: one line for each check, a sentence about cost and cure for what this machine lacks."""
import ctypes
import glob
import os
import platform
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import SOFTVERBS, Skip, TEMPORARY, expect, softverbs

SYSTEM_CALLS = {"x86_64": {"process_vm_readv": 310, "memfd_create": 319, "userfaultfd": 323},
                "aarch64": {"process_vm_readv": 270, "memfd_create": 279, "userfaultfd": 282}}


def _lines(done):
    found = re.findall(r"^(ok|warning|problem) +(\S+(?: \S+)*?)  +(\S.*[.)])$", done.stdout.decode(), re.MULTILINE)
    assert len(found) == done.stdout.count(b"\n") >= 12, cases.told(done)
    return {name: (verdict, sentence) for verdict, name, sentence in found}


def _refusing(call):
    """A function for the child to call: from then on the kernel refuses this system call with EPERM."""
    number = SYSTEM_CALLS.get(platform.machine(), {}).get(call)
    if number is None:
        raise Skip(f"the number of {call} on {platform.machine()} is not known to this test")
    program = b"".join(struct.pack("HBBI", *line) for line in (
        (0x20, 0, 0, 0),             # load the number of the system call
        (0x15, 0, 1, number),        # compare it with `number`
        (0x06, 0, 0, 0x00050001),    # then SECCOMP_RET_ERRNO with EPERM
        (0x06, 0, 0, 0x7FFF0000)))   # else SECCOMP_RET_ALLOW
    text = ctypes.create_string_buffer(program)
    filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)

    def refuse():  # PR_SET_NO_NEW_PRIVS, then PR_SET_SECCOMP with SECCOMP_MODE_FILTER
        assert text.raw and not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, filter_, 0, 0)
    return refuse


def _doctor(**options):
    try:
        return subprocess.run([SOFTVERBS, "doctor"], capture_output=True, env=cases.environment(**options.pop("env", {})),
                              check=False, **options)
    except subprocess.SubprocessError as error:
        raise Skip("this machine does not let a process limit itself") from error


def a_good_machine_is_said_to_be_good():
    done = _doctor()
    lines = _lines(done)
    assert done.returncode == 0 and done.stderr == b"", cases.told(done)
    for name in ("library", "directory", "kernel paths", "sealed memory"):
        assert lines[name][0] == "ok", lines[name]
    assert f"{cases.BUILD}/lib/libibverbs.so.1" in lines["library"][1] and cases.DIRECTORY in lines["directory"][1]


def a_slip_in_the_name_of_a_variable_is_found():
    verdict, sentence = _lines(_doctor(env={"SOFTVERBS_FAULTS": "drop=1%"}))["settings"]
    assert verdict == "problem" and sentence == "SOFTVERBS_FAULTS is not a setting; SOFTVERBS_FAULT is one.", sentence
    verdict, sentence = _lines(_doctor(env={"SOFTVERBS_OF_THE_USER": "1"}))["settings"]
    assert verdict == "warning" and "SOFTVERBS_OF_THE_USER" in sentence, sentence
    assert _lines(_doctor(env={"SOFTVERBS_TARBALL": "x", "SOFTVERBS_INPUT_OPTIONS": "x"}))["settings"][0] == "ok"


def it_says_why_NCCL_is_told_its_type():
    verdict, sentence = _lines(_doctor(env={"NCCL_GIN_TYPE": None}))["nccl"]
    assert verdict == "ok" and "NCCL_GIN_TYPE=2" in sentence and "PyTorch" in sentence, sentence
    verdict, sentence = _lines(_doctor(env={"NCCL_GIN_TYPE": "3"}))["nccl"]
    assert verdict == "warning" and "NCCL_GIN_TYPE=3" in sentence, sentence


def refused_reading_is_a_warning_with_its_cost():
    done = _doctor(preexec_fn=_refusing("process_vm_readv"))
    verdict, sentence = _lines(done)["single copy"]
    assert verdict == "warning" and "copied twice" in sentence and "seccomp" in sentence and done.returncode == 0, sentence


def a_refused_userfaultfd_is_a_warning():
    done = _doctor(preexec_fn=_refusing("userfaultfd"))
    verdict, sentence = _lines(done)["doorbells"]
    assert verdict == "warning" and "SIGSEGV" in sentence and "uses a processor" in sentence and done.returncode == 0, sentence


def refused_memory_is_a_problem():
    done = _doctor(preexec_fn=_refusing("memfd_create"))
    verdict, sentence = _lines(done)["sealed memory"]
    assert verdict == "problem" and "Operation not permitted" in sentence and done.returncode == 1, sentence


def few_descriptors_are_a_warning():
    done = _doctor(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60)))
    verdict, sentence = _lines(done)["descriptors"]
    assert verdict == "warning" and "60 files" in sentence and "ulimit -n" in sentence and done.returncode == 0, sentence


def one_processor_is_a_warning():
    one = {min(os.sched_getaffinity(0))}
    verdict, sentence = _lines(_doctor(preexec_fn=lambda: os.sched_setaffinity(0, one)))["processors"]
    assert verdict == "warning" and "one processor" in sentence, sentence


def an_impossible_directory_is_a_problem():
    done = _doctor(env={"SOFTVERBS_DIR": "/proc/softverbs"})
    assert _lines(done)["directory"][0] == "problem" and done.returncode == 1, cases.told(done)


def a_missing_library_is_a_problem():
    tool = cases.installed(f"{TEMPORARY}/poor")
    for name in os.listdir(f"{TEMPORARY}/poor/{cases.LIBRARY}"):
        if name.startswith("libibverbs"):
            os.unlink(f"{TEMPORARY}/poor/{cases.LIBRARY}/{name}")
    done = softverbs("doctor", tool=tool)
    assert _lines(done)["library"][0] == "problem" and done.returncode == 1, cases.told(done)


def _with_library(directory, edit):
    """A softverbs whose library has other bytes."""
    tool = cases.installed(f"{TEMPORARY}/{directory}")
    path = f"{TEMPORARY}/{directory}/{cases.LIBRARY}/libibverbs.so.1"
    with open(path, "rb") as file:
        data = file.read()
    os.unlink(path)
    with open(path, "wb") as file:
        file.write(edit(data))
    return _lines(softverbs("doctor", tool=tool))["symbols"]


def it_compares_our_symbols_with_those_installed():
    if not glob.glob("/usr/lib/*/libibverbs.so.1"):
        raise Skip("no libibverbs.so.1 is installed")
    verdict, sentence = _lines(_doctor())["symbols"]
    assert verdict == "ok" and "every symbol of /" in sentence and " 0 libraries" not in sentence, sentence


def a_symbol_that_is_missing_is_named_with_those_who_need_it():
    if not glob.glob("/usr/lib/*/libibverbs/libmlx5-rdmav34.so"):
        raise Skip("the provider library of mlx5 for node 34 is not installed")
    verdict, sentence = _with_library("without", lambda data: data.replace(b"\0ibv_cmd_alloc_pd\0", b"\0ibv_cmd_other_pd\0"))
    assert verdict == "warning" and "ibv_cmd_alloc_pd@IBVERBS_PRIVATE_34" in sentence and "-rdmav34.so" in sentence and \
        " more" in sentence, sentence


def a_node_that_is_missing_is_seen_too():
    verdict, sentence = _with_library("node", lambda data: data.replace(b"\0IBVERBS_1.9\0", b"\0IBVERBS_9.9\0"))
    assert verdict == "warning" and "ibv_get_device_index@IBVERBS_1.9" in sentence, sentence


def an_ordinary_user_can_ask_it():
    tool = cases.installed(f"{TEMPORARY}/theirs")
    done = softverbs("doctor", tool=tool, user="nobody")
    assert _lines(done)["directory"][0] == "ok" and done.returncode == 0, cases.told(done)


def _of(*arguments, **options):
    """Findings by their names, and the exit status."""
    done = softverbs("doctor", *arguments, **options)
    assert done.stderr == b"", cases.told(done)
    return dict((name, (verdict, sentence)) for verdict, name, sentence in re.findall(
        r"^(ok|warning|problem) +(\S+(?: \S+)*?)  +(\S.*)$", done.stdout.decode(), re.MULTILINE)), done.returncode


def one_program_at_a_time():
    expect(softverbs("doctor", "one", "two"), 2, b"", [b"one program at a time"])
    found, status = _of("no-such-program")
    assert found["program"][0] == "problem" and "no-such-program" in found["program"][1] and status == 1, found


def a_program_of_the_distribution_gets_our_library():
    if not os.path.exists("/usr/bin/rping"):
        raise Skip("package rdmacm-utils is not installed")
    found, status = _of("rping")
    assert status == 0 and {verdict for verdict, _ in found.values()} == {"ok"}, found
    assert f"{cases.BUILD}/lib/libibverbs.so.1" in found["libibverbs"][1] and "librdmacm.so.1" in found["librdmacm"][1], found


def a_program_of_libmlx5_learns_which_one_it_gets():
    if not os.path.exists("/usr/bin/ib_write_bw"):
        raise Skip("package perftest is not installed")
    profile = os.path.join(cases.BUILD, "profiles", "connectx-7-roce.profile")
    for value, ours in ((profile, False), (f"{profile},mlx5", True)):
        said = " ".join(softverbs("doctor", "ib_write_bw", env={"SOFTVERBS_PROFILE": value}).stdout.decode().split("\n    "))
        found = re.search(r"^ok +libmlx5 +It will load (ours, )?(\S+libmlx5.so.1)[,.]", said, re.M)
        assert found and bool(found[1]) == ours and found[2].startswith(cases.BUILD) == ours, said


def around_names_the_library_of_the_distribution_and_what_goes_past_it():
    if not os.path.exists("/usr/bin/ib_write_bw"):
        raise Skip("package perftest is not installed")
    said = softverbs("doctor", "--around", "ib_write_bw").stdout.decode()
    library = re.search(r"^ok +libibverbs +It will load (\S+), of rdma-core (\d+)\.", " ".join(said.split("\n    ")), re.M)
    assert library and not library.group(1).startswith(cases.BUILD) and int(library.group(2)) >= 25, said
    assert "past libibverbs" in said and "libmlx5.so.1" in said and "softverbs around" in said, said
    assert re.search(r"^(ok|warning) +drivers ", said, re.M) and re.search(r"^(ok|problem) +devices ", said, re.M), said
    said = softverbs("doctor", "--around", "ibv_rc_pingpong").stdout.decode()
    assert "past libibverbs" not in said, said
    expect(softverbs("doctor", "--around"), 2, b"", [b"--around is about a program."])


def a_static_program_is_a_problem():
    found, status = _of("/sbin/ldconfig.real" if os.path.exists("/sbin/ldconfig.real") else "/sbin/ldconfig")
    assert found["linking"][0] == "problem" and "static" in found["linking"][1] and status == 1, found


def a_program_in_go_is_known_by_its_note():
    """Go's linker leaves a note; a program in C that has such a note replaces one."""
    compiler = shutil.which("cc")
    if not compiler:
        raise Skip("there is no C compiler")
    source = f"{TEMPORARY}/go.c"
    with open(source, "w", encoding="ascii") as file:
        file.write('__asm__(".section .note.go.buildid,\\"a\\",@note\\n.long 4, 4, 4\\n.ascii \\"Go\\\\0\\\\0abcd\\"\\n.text");\n'
                   "int main(void) { return 0; }\n")
    for options, name, verdict, words in (([], "go", "warning", "verbs that it calls by cgo work"), (["-static"], "linking", "problem", "static program in Go")):
        built = subprocess.run([compiler, *options, "-o", f"{TEMPORARY}/go", source], capture_output=True, check=False)
        if built.returncode:
            raise Skip(f"cc can't link with {options}: {built.stderr.decode()}")
        found, _ = _of(f"{TEMPORARY}/go")
        assert found[name][0] == verdict and words in found[name][1] and "softverbs sysfs" in found[name][1], found
    assert "go" not in _of("/bin/sh")[0]


def it_says_whether_there_is_a_gpu():
    """The check's other lines are tested on made-up machines (tools/doctor/gpu_test.c)."""
    lines = _lines(_doctor())
    assert ("No driver of a GPU" in lines["gpu"][1]) == (not os.path.exists("/proc/driver/nvidia/version") and "AMD" not in lines["gpu"][1]), lines["gpu"]
    assert ("gpu and nccl" in lines) == os.path.exists("/proc/driver/nvidia/version"), lines


def a_script_is_looked_at_by_its_interpreter():
    path = f"{TEMPORARY}/script"
    with open(path, "w", encoding="ascii") as script:
        script.write("#! /bin/sh -e\ntrue\n")
    os.chmod(path, 0o755)
    found, status = _of(path)
    assert "script of /bin/sh" in found["program"][1] and found["linking"][0] == "ok" and status == 0, found
    assert found["libibverbs"][0] == "warning" and "not linked with libibverbs.so.1" in found["libibverbs"][1], found


def a_text_that_names_no_interpreter_is_the_shells():
    """The result as this user gets it."""
    path = f"{TEMPORARY}/text"
    with open(path, "w", encoding="ascii") as script:
        script.write("echo from the shell\n")
    os.chmod(path, 0o755)
    if platform.libc_ver()[0] != "glibc":
        raise Skip("the C library starts no shell for such a file")
    expect(softverbs("run", "--dir", f"{TEMPORARY}/own", path), out=b"from the shell\n")
    found, status = _of(path)
    assert "script of /bin/sh, as it is text" in found["program"][1] and found["linking"][0] == "ok" and status == 0, found


def _compiled(name, source, *options):
    path = f"{TEMPORARY}/{name}"
    if not shutil.which("cc"):
        raise Skip("there is no compiler")
    subprocess.run(["cc", "-x", "c", "-", "-x", "none", "-w", "-o", path, *options], input=source, check=True, text=True)
    return path


HAS_DEVICES = "int ibv_get_device_list(int *); int main(void) { int count = 0; ibv_get_device_list(&count); return count != 2; }"
OURS = f"It will load ours, {cases.BUILD}/lib/libibverbs.so.1,"


def _theirs():
    there = glob.glob("/usr/lib/*/libibverbs.so.1")
    if not there:
        raise Skip("no libibverbs.so.1 is installed")
    return there[0]


def an_rpath_that_leads_elsewhere_gives_way_to_what_is_preloaded():
    """The findings of doctor, and the behaviour of a program then."""
    there = _theirs()
    options = [there, f"-Wl,-rpath,{os.path.dirname(there)}"]
    for name, option, phrases in (("rpath", "--disable-new-dtags", ("preloaded", "RPATH", os.path.dirname(there))),
                                  ("runpath", "--enable-new-dtags", ("LD_LIBRARY_PATH",))):
        program = _compiled(name, HAS_DEVICES, f"-Wl,{option}", *options)
        found, status = _of(program)
        verdict, sentence = found["libibverbs"]
        assert verdict == "ok" and sentence.startswith(OURS) and all(phrase in sentence for phrase in phrases) and status == 0, found
        expect(softverbs("run", "--devices", "2", "--dir", f"{TEMPORARY}/own", program))


def a_library_with_an_rpath_is_seen():
    there = _theirs()
    inner = _compiled("libinner.so", HAS_DEVICES.replace("main", "inner"), "-shared", "-fPIC", "-Wl,--disable-new-dtags", there,
                      f"-Wl,-rpath,{os.path.dirname(there)}")
    program = _compiled("outer", "int inner(void); int main(void) { return inner(); }", inner)
    found, status = _of(program)
    assert found["libibverbs"][0] == "ok" and "a library of it has an RPATH" in found["libibverbs"][1] and status == 0, found
    expect(softverbs("run", "--devices", "2", "--dir", f"{TEMPORARY}/own", program))


def a_library_that_is_named_with_its_directory_is_told():
    nameless = _compiled("libibverbs.so.9", "int ibv_get_device_list(int *count) { return *count = 9; }", "-shared", "-fPIC")
    program = _compiled("namer", HAS_DEVICES, nameless)
    found, _ = _of(program)
    assert found["libibverbs"][0] == "warning" and nameless in found["libibverbs"][1] and "directory" in found["libibverbs"][1], found
    expect(softverbs("run", "--devices", "2", "--dir", f"{TEMPORARY}/own", program))


def what_a_program_calls_and_is_missing_is_named():
    there = glob.glob("/usr/lib/*/libibverbs.so.1")
    lacking = [line.split()[0] for line in expect(softverbs("missing", "--provider")).stdout.decode().splitlines()]
    if not there or "ibv_cmd_alloc_pd" not in lacking:
        raise Skip("no libibverbs.so.1 is installed, or nothing of it is missing")
    found, _ = _of(_compiled("caller", "int ibv_cmd_alloc_pd(void); int main(void) { return ibv_cmd_alloc_pd(); }", there[0]))
    assert found["functions"][0] == "warning" and "ibv_cmd_alloc_pd" in found["functions"][1], found


def a_program_that_gets_other_rights_is_a_problem():
    if os.geteuid() != 0:
        raise Skip("only root can make such a program")
    path = _compiled("rights", "int main(void) { return 0; }")
    os.chown(path, 65534, 65534)
    os.chmod(path, 0o4755)
    found, status = _of(path)
    assert found["rights"][0] == "problem" and "set-uid" in found["rights"][1] and status == 1, found


def a_library_that_is_not_installed_is_named():
    library = _compiled("libgone.so.1", "int gone(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libgone.so.1")
    path = _compiled("needy", "int gone(void); int main(void) { return gone(); }", library)
    os.unlink(library)
    found, status = _of(path)
    assert found["libraries"][0] == "problem" and "libgone.so.1" in found["libraries"][1] and status == 1, found


def _on_a_system(os_release, *arguments, mounts=(), path="/nowhere"):
    """`softverbs doctor` where /etc/os-release has this text, $PATH is `path`, and files are covered with others: (file, cover)."""
    made_up = f"{TEMPORARY}/os-release"
    with open(made_up, "w", encoding="utf-8") as file:
        file.write(os_release)
    binds = "; ".join(f"mount --bind {cover} {os.path.realpath(place)}" for place, cover in (("/etc/os-release", made_up), *mounts))
    for option in ([], ["--user", "--map-root-user"]):
        done = subprocess.run(["unshare", *option, "--mount", "sh", "-ec", f"{binds}; PATH={path}; exec {SOFTVERBS} doctor {' '.join(arguments)}"],
                              capture_output=True, check=False, env=cases.environment())
        found = re.findall(r"^(ok|warning|problem) +(\S+(?: \S+)*?)  +(\S.*)$", done.stdout.decode(), re.MULTILINE)
        if found:
            return {name: sentence for _, name, sentence in found}
    raise Skip("this machine allows no mount namespaces")


def packages_have_the_names_of_the_system():
    for os_release, line in (("ID=fedora\n", "As root: dnf install libibverbs-utils librdmacm-utils perftest"),
                             ('ID=neon\nID_LIKE="ubuntu debian"\n', "As root: apt install ibverbs-utils rdmacm-utils perftest"),
                             ("ID=alpine\n", "As root: apk add cmd:ibv_devinfo cmd:rping"),
                             ("ID=none\n", "is not known; Debian's packages are ibverbs-utils rdmacm-utils perftest")):
        said = _on_a_system(os_release)["packages"]
        assert "Not installed" in said and line in said, said
    directory = f"{TEMPORARY}/all"
    os.makedirs(directory)
    for program in ("ibv_devinfo", "ib_send_bw", "gdb", "tshark"):
        os.symlink("/bin/true", f"{directory}/{program}")
    said = _on_a_system("ID=debian\n", path=directory)["packages"]
    assert "itself: rping" in said and "apt install rdmacm-utils" in said and "perftest" not in said, said


def a_missing_library_has_its_package():
    there = glob.glob("/usr/lib/*/librdmacm.so.1")
    if not there:
        raise Skip("librdmacm.so.1 is not installed")
    path = _compiled("connecting", "void *rdma_create_event_channel(void); int main(void) { return !rdma_create_event_channel(); }", there[0])
    other = f"{TEMPORARY}/other-class"  # the dynamic linker looks on after a library of another word size
    with open(there[0], "rb") as file:
        content = bytearray(file.read())
    content[4] = 1  # EI_CLASS: ELFCLASS32
    with open(other, "wb") as file:
        file.write(content)
    said = _on_a_system("ID=debian\n", path, mounts=((there[0], other),))["libraries"]
    assert "not installed: librdmacm.so.1. As root: apt install librdmacm1." in said, said


def damaged_files_are_refused():
    path = f"{TEMPORARY}/damaged"
    with open(cases.SOFTVERBS, "rb") as file:
        data = bytearray(file.read())
    for edit in (slice(32, 40), slice(56, 58), slice(64, 200)):  # e_phoff, e_phnum, the first program headers
        broken = data.copy()
        broken[edit] = b"\xff" * (edit.stop - edit.start)
        with open(path, "wb") as file:
            file.write(broken)
        os.chmod(path, 0o755)
        _of(path)
    for size in (0, 1, 2, 3, 63, 64, 100):
        with open(path, "wb") as file:
            file.write(data[:size])
        assert _of(path)[1] == 1, size


def _in_a_network(*commands):
    """`softverbs doctor --net one` after these commands, in a new network namespace with a veth pair "one", "two"."""
    made = ["ip link add one type veth peer name two", "ip link set lo up", *commands, f"exec {SOFTVERBS} doctor --net one"]
    for option in ([], ["--user", "--map-root-user"]):
        done = subprocess.run(["unshare", *option, "--net", "--mount", "sh", "-ec", "; ".join(made)], capture_output=True, check=False,
                              env=cases.environment())
        if b"state" in done.stdout:
            return dict((name, (verdict, sentence)) for verdict, name, sentence in re.findall(
                r"^(ok|warning|problem) +(\S+(?: \S+)*?)  +(\S.*)$", done.stdout.decode(), re.MULTILINE))
    raise Skip("this machine allows no network namespaces joined by a veth pair")


def a_network_is_looked_at():
    found, status = _of("--net", "no-such-if")
    assert found["interface"][0] == "problem" and status == 1, found
    found = _in_a_network()
    assert found["state"][0] == "problem" and found["addresses"][0] == "problem", found
    up = ["ip link set two up", "ip address add 10.1.2.3/24 dev one", "ip link set one mtu 1500 up"]
    found = _in_a_network(*up)
    assert found["state"][0] != "problem" and found["port 4791"][0] == "ok" and "path MTU of RoCE is 1024" in found["MTU"][1], found
    assert "1 of IPv4" in found["addresses"][1], found
    found = _in_a_network(*up, "ip link set one mtu 9000")
    assert "path MTU of RoCE is 4096" in found["MTU"][1], found


def a_strict_path_filter_is_a_warning():
    found = _in_a_network("ip link set two up", "ip link set one up", "sysctl -qw net.ipv4.conf.one.rp_filter=1 || echo 1 >/proc/sys/net/ipv4/conf/one/rp_filter")
    assert found["path filter"][0] == "warning" and "net.ipv4.conf.one.rp_filter=2" in found["path filter"][1], found


def _with_rules(rules):
    """The check's answer where /usr/sbin holds only an nft that prints these rules; None: it is empty."""
    folder = tempfile.mkdtemp(dir=cases.TEMPORARY)
    if rules is not None:
        with open(f"{folder}/nft", "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\ncat <<END\n{rules}\nEND\n")
        os.chmod(f"{folder}/nft", 0o755)
    return _in_a_network("ip link set two up", "ip link set one up", f"mount --bind {folder} /usr/sbin")["firewall"]


def rules_that_drop_are_a_warning():
    chain = "table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy %s;\n%s\t}\n}"
    for rules in (chain % ("drop", ""), chain % ("accept", "\t\tudp dport 4791 drop\n"), chain % ("accept", "\t\tudp dport 1-65535 reject\n")):
        verdict, sentence = _with_rules(rules)
        assert verdict == "warning" and "UDP port 4791 must be let in on one" in sentence, (rules, sentence)
    for rules, said in ((chain % ("accept", "\t\ttcp dport 22 accept\n"), "no rule that drops"), ("", "no rule that drops"), (None, "Not looked for")):
        verdict, sentence = _with_rules(rules)
        assert verdict == "ok" and said in sentence, (rules, sentence)


def _holder(address, family="AF_INET", before="0"):
    """A program that has port 4791 (0x12b7) when the command's shell goes on."""
    has_it = "grep -q ':12B7 ' /proc/net/udp /proc/net/udp6"
    return f"{cases.PYTHON} -c 'import socket, time; s = socket.socket(socket.{family}, socket.SOCK_DGRAM); {before}; " \
           f"s.bind((\"{address}\", 4791)); time.sleep(60)' >/dev/null 2>&1 & " \
           f"for i in $(seq {round(50 * cases.patience(10))}); do {has_it} && break; sleep 0.02; done"


def whoever_has_the_port_is_named():
    holder = _holder("0.0.0.0")
    for command in (holder, _holder("127.0.0.1"), _holder("::1", "AF_INET6")):
        found = _in_a_network("ip link set two up", "ip link set one up", command)
        assert found["port 4791"][0] == "problem" and "A program of this user" in found["port 4791"][1] and \
            "without SO_REUSEPORT" in found["port 4791"][1], (command, found)
    found = _in_a_network("ip link set two up", "ip link set one up",
                          _holder("0.0.0.0", before="s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)"))
    assert found["port 4791"][0] == "ok" and "A program of this user" in found["port 4791"][1], found
    if os.geteuid() == 0 and not subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        # a user namespace would have no other user
        found = _in_a_network("ip link set two up", "ip link set one up",
                              "setpriv --reuid=65534 --clear-groups " + holder)
        assert found["port 4791"][0] == "problem" and "65534" in found["port 4791"][1], found


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
