#!/usr/bin/env python3
"""Profiles: what their devices say of themselves, and that each refuses what it lacks (lacks.c). Prints TAP."""
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, folder) for folder in ("../tool", "../clients", "../clients/librdmacm")]
import cases  # pylint: disable=wrong-import-position
from cases import BUILD, softverbs  # pylint: disable=wrong-import-position
from rdmacm import Host, choose_port, exchange  # pylint: disable=wrong-import-position

PROFILES = os.path.join(HERE, "../../profiles")
NAMES = sorted(name.removesuffix(".profile") for name in os.listdir(PROFILES) if name.endswith(".profile"))
# The lines that differ from machine to machine.
OWN = (re.compile(r"(node_guid|sys_image_guid):.*"), re.compile(r"(GID\[ *\d+\]):.*(?=, )"))


def _expect(holds, *told):
    assert holds, told


def _devinfo(*options):
    done = softverbs("run", *options, "ibv_devinfo", "-v")
    _expect(done.returncode == 0, done.stdout, done.stderr)
    return done.stdout.decode()


def _without_own(text):
    for pattern in OWN:
        text = pattern.sub(r"\1", text)
    return text.strip().splitlines()


def rxe_says_what_the_kernel_says():
    """rxe.devinfo is the output of ibv_devinfo -v in the guest of rxe-guest, Debian's Linux 6.1.192."""
    with open(f"{HERE}/rxe.devinfo", encoding="utf-8") as file:
        wanted = _without_own(file.read())
    got = _without_own(_devinfo("--profile", "rxe", "--devices", "rxe0"))
    different = [pair for pair in zip(wanted, got) if pair[0] != pair[1]]
    _expect(not different and len(wanted) == len(got), different, len(wanted), len(got))


def _lacks(name):
    """The cases of lacks.c under this profile: how many, and which failed."""
    with tempfile.TemporaryDirectory() as folder:
        done = softverbs("run", "--profile", name, "--log", "info", "--log-file", f"{folder}/log", f"{BUILD}/tests/profiles/lacks",
                         f"{PROFILES}/{name}.profile", env={"SOFTVERBS_LOG_LINES": None})
    lines = done.stdout.decode().splitlines()
    failed = [lines[i:i + 2] for i, line in enumerate(lines) if line.startswith("not ok")]
    _expect(lines and re.fullmatch(r"1\.\.\d+", lines[-1]) and not failed and done.returncode == 0, name, failed, done.stderr, lines[-1:])


COUNTED = ("qp", "cq", "mr", "pd", "ah", "srq", "mw")
FEW = 300


def _with_few(name):
    """The text of the profile, with each number of objects that it allows small enough to be reached."""
    with open(f"{PROFILES}/{name}.profile", encoding="utf-8") as file:
        text = file.read()
    for kind in COUNTED:
        found = re.search(rf"^max_{kind} = (\w+)", text, re.M)
        if not found:
            text += f"max_{kind} = 5\n"
        elif int(found[1], 0) > FEW:
            text = text.replace(found[0], f"max_{kind} = 5")
    return text


def _counts(name):
    """Makes as many objects of each kind as the profile allows, and gets the errno of one more (counts.c)."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/{name}.profile"
        with open(path, "w", encoding="utf-8") as file:
            file.write(_with_few(name))
        done = softverbs("run", "--profile", path, f"{BUILD}/tests/profiles/counts", path)
    lines = done.stdout.decode().splitlines()
    _expect(done.returncode == 0 and len(lines) > 4 and lines[-1] == f"1..{len(lines) - 1}", name, lines, done.stderr)


def _refuses(name):
    def case():
        _lacks(name)
        _counts(name)
    case.__name__ = f"{name.replace('-', '_')}_refuses_what_it_lacks"
    return case


def devices_say_what_kind_they_are():
    for name, *wanted in (("siw", r"transport:\s+iWARP", r"gid_tbl_len:\s+1\n"), ("efa", r"transport:\s+unspecified", r"link_layer:\s+Unspecified"),
                          ("connectx-3", r"GID\[  1\]:.*RoCE v1\n"), ("connectx-7", r"link_layer:\s+InfiniBand", r"port_lid:\s+[1-9]")):
        text = _devinfo("--profile", name)
        _expect(all(re.search(each, text) for each in wanted) and "RoCE v2" not in text, name, text)


def programs_of_librdmacm_connect_and_end_on_iwarp():
    suite = Host()
    common = ["rping", "-a", "127.0.0.1", "-p", choose_port(), "-C", "3"]
    exchange(suite, [*common, "-s"], [*common, "-c"], extra={"SOFTVERBS_PROFILE": os.path.abspath(f"{PROFILES}/siw.profile")})
    shutil.rmtree(suite.directory, ignore_errors=True)


def _screen(name, *command):
    return cases.at_terminal([cases.SOFTVERBS, "run", "--profile", name, "--", *command], cases.environment())


def a_terminal_shows_what_the_profile_refused():
    status, text = _screen("siw", "ibv_ud_pingpong", "-g", "0")
    _expect(status and "ibv_create_qp: profile siw: qp_type is 4: The device of this profile has no queue pairs of this type. (reason 851)" in text, text)


def an_unknown_name_shows_those_that_there_are():
    done = softverbs("run", "--profile", "rxf", "true")
    _expect(done.returncode != 0 and b'There is no profile "rxf". There are ' in done.stderr and b"rxe" in done.stderr, done.stderr)


def _with_file(text, *arguments, **options):
    with tempfile.NamedTemporaryFile("w", suffix=".profile") as file:
        file.write(text)
        file.flush()
        return file.name, softverbs(*[argument.replace("@FILE@", file.name) for argument in arguments], **options)


def a_bad_file_is_refused_with_its_line():
    path, done = _with_file("# mine\nmax_qq = 4\n", "run", "--profile", "@FILE@", "true")
    _expect(done.returncode != 0 and f'The profile {path}, line 2: there is no key "max_qq"; max_qp may be meant.'.encode() in done.stderr, done.stderr)


def a_file_that_is_not_there_is_named():
    done = softverbs("run", "--profile", "./nowhere.profile", "true")
    _expect(done.returncode != 0 and b"nowhere.profile can't be read: No such file" in done.stderr, done.stderr)


def the_library_ignores_a_bad_file_and_says_so():
    path, done = _with_file("max_qp = many\n", "run", "--log", "error", "sh", "-c", "SOFTVERBS_PROFILE=@FILE@ exec ibv_devinfo")
    _expect(done.returncode == 0 and f'The profile {path}, line 1: "many" is not a number. It is ignored.'.encode() in done.stderr, done.stderr)


def the_variable_is_a_path_and_takes_no_name():
    done = softverbs("run", "--log", "error", "sh", "-c", "SOFTVERBS_PROFILE=rxe exec ibv_devices")
    _expect(done.returncode == 0 and b"SOFTVERBS_PROFILE is a path; names are for --profile." in done.stderr, done.stderr)


def own_profiles_name_what_they_change():
    _, done = _with_file("max_qp = 17\nfw_ver = 1.2.3\n", "run", "--profile", "@FILE@", "ibv_devinfo", "-v")
    text = done.stdout.decode()
    _expect(re.search(r"max_qp:\s+17\n", text) and re.search(r"fw_ver:\s+1\.2\.3\n", text) and re.search(r"max_cq:\s+131072\n", text), text)


def a_profile_names_its_devices():
    for variable, option, wanted in ((None, (), [b"rdmap0s6", b"rdmap0s7"]), ("mine", (), [b"mine"]), (None, ("--devices", "1"), [b"soft0"])):
        _, done = _with_file("devices = rdmap0s6,rdmap0s7\n", "run", "--profile", "@FILE@", *option, "ibv_devices", env={"SOFTVERBS_DEVICES": variable})
        _expect([line.split()[0] for line in done.stdout.splitlines()[2:]] == wanted, variable, option, done.stdout, done.stderr)


def limits_go_before_the_profile():
    _, done = _with_file("max_sge = 4\n", "run", "--profile", "@FILE@", "ibv_devinfo", "-v", env={"SOFTVERBS_LIMITS": "max_sge=2"})
    _expect(re.search(rb"max_sge:\s+2\n", done.stdout), done.stdout)


def own_profiles_raise_limits():
    raised = {"max_qp": 100000, "max_qp_wr": 100000, "max_cq": 200000, "max_cqe": 5000000, "max_mr": 2000000, "max_pd": 70000, "max_ah": 2000000,
              "max_srq": 100000, "max_srq_wr": 200000, "max_mw": 2000000, "max_qp_rd_atom": 200}
    text = "".join(f"{key} = {value}\n" for key, value in raised.items())
    _, done = _with_file(text, "run", "--profile", "@FILE@", "ibv_devinfo", "-v")
    told = done.stdout.decode()
    _expect(all(re.search(rf"\b{key}:\s+{value}\n", told) for key, value in raised.items()), told, done.stderr)
    _, done = _with_file(text, "run", "--profile", "@FILE@", "ibv_rc_pingpong", "-r", "100001", "-g", "0", "-p", str(choose_port()))
    _expect(done.returncode != 0 and b"Couldn't create QP" in done.stderr, done.stderr)
    suite = Host()
    with tempfile.NamedTemporaryFile("w", suffix=".profile") as file:
        file.write(text)
        file.flush()
        suite.pair(["ibv_rc_pingpong", "-r", "65536", "-g", "0", "-n", "10"], extra={"SOFTVERBS_PROFILE": file.name})
    shutil.rmtree(suite.directory, ignore_errors=True)


def profiles_go_with_adverse():
    for name, program, *options in (("rxe", "ibv_rc_pingpong"), ("efa", "ibv_ud_pingpong"), ("apple-thunderbolt", "ibv_uc_pingpong", "-r", "40")):
        suite = Host()
        suite.pair([program, "-g", "0", "-n", "20", *options],
                   extra={"SOFTVERBS_PROFILE": os.path.abspath(f"{PROFILES}/{name}.profile"), "SOFTVERBS_ADVERSE": "seed=7"})
        shutil.rmtree(suite.directory, ignore_errors=True)


def a_profile_of_infiniband_makes_such_ports():
    _, done = _with_file("link_layer = InfiniBand\n", "run", "--profile", "@FILE@", "ibv_devinfo")
    _expect(re.search(rb"link_layer:\s+InfiniBand", done.stdout) and re.search(rb"port_lid:\s+[1-9]", done.stdout), done.stdout)


def env_prints_the_path():
    done = softverbs("env", "--profile", "rxe")
    _expect(re.search(rb"SOFTVERBS_PROFILE=\S*/profiles/rxe\.profile", done.stdout), done.stdout)


for each in NAMES:
    globals()[f"{each.replace('-', '_')}_refuses_what_it_lacks"] = _refuses(each)

if __name__ == "__main__":
    cases.main(sys.modules[__name__])
