#!/usr/bin/env python3
"""A set-uid program that is linked with the library (as it would be where a distribution makes it the system's libibverbs) takes
nothing from the environment of the user who starts it."""
import json
import os
import pwd
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import Skip, TEMPORARY, softverbs, told

USER = "nobody"
LIST = f"{cases.TREE}/src/base/settings.def"
SOURCE = r"""
#include <infiniband/verbs.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    int count = 0;
    struct ibv_device **devices = ibv_get_device_list(&count);
    struct ibv_context *context = count ? ibv_open_device(devices[0]) : NULL;
    struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
    char name[16];
    struct ibv_device_attr device = {.max_qp = 0};
    if (context)
        ibv_query_device(context, &device);
    printf("%u %d %d %s\n", (unsigned)geteuid(), count, device.max_qp, pd ? "opened" : "refused");
    fflush(stdout);
    int end = scanf("%15s", name); /* until the test has looked */
    if (pd)
        ibv_dealloc_pd(pd);
    if (context)
        ibv_close_device(context);
    ibv_free_device_list(devices);
    return end > 2;
}
"""


class _Started:
    """The program, started by another user than root with this environment; the line that it says first."""

    def __init__(self, program, ends_as="opened", **environment):
        self.process = subprocess.Popen([*cases.identity(USER), program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env={"PATH": os.environ["PATH"], **environment})
        self.said = self.process.stdout.readline().split()
        assert len(self.said) == 4 and self.said[3] == ends_as, f"{self.said}"

    def udp_ports(self):
        with open(f"/proc/{self.process.pid}/net/udp", encoding="ascii") as lines:
            return [line.split()[1].rsplit(":", 1)[1] for line in list(lines)[1:]]

    def end(self):
        _, errors = self.process.communicate("end\n")
        assert (self.process.returncode, errors) == (0, ""), (self.process.returncode, errors)


def _program(setuid):
    path = f"{TEMPORARY}/privileged/{'set-uid' if setuid else 'plain'}"
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.exists(f"{TEMPORARY}/installed"):
            cases.installed(f"{TEMPORARY}/installed")
        library = f"{TEMPORARY}/installed/{cases.LIBRARY}"
        subprocess.run(["cc", "-x", "c", "-o", path, "-", "-libverbs", f"-Wl,-rpath,{library}"], input=SOURCE, text=True, check=True)
        os.chmod(path, 0o4755 if setuid else 0o755)
    return path


def _require_set_uid():
    if os.geteuid() != 0:
        raise Skip("only root can make a set-uid program of root")
    if os.statvfs(TEMPORARY).f_flag & os.ST_NOSUID:
        raise Skip(f"{TEMPORARY} is mounted nosuid")


def _victims_place():
    """A directory of the user, for the files that it hopes to get."""
    place = tempfile.mkdtemp(dir=TEMPORARY)
    os.chown(place, pwd.getpwnam(USER).pw_uid, pwd.getpwnam(USER).pw_gid)
    return place


RULE = "when ibv_alloc_pd: error ENOMEM"
CONTENTS = {"CONFIGURATION": "counters = {}/counted-by-config\nnet = lo\ndevices = 3\n", "SCRIPT": RULE + "\n",
            "PROFILE": "name = small\nmax_qp = 3\n", "READ": "* * *\n"}
# A value of each type of settings that does something.
VALUES = {"NUMBER": "1", "FRACTION": "0.5", "TEXT": "7", "DEVICES": "2", "PCI": "0000:18:00.0", "LIMITS": "max_qp=2", "INTERFACES": "lo",
          "FAULTS": "drop=50%", "CHECKS": "error", "BEHAVIOURS": "seed=1", "SCHEDULE": "seed=1", "RULES": RULE}
WRITTEN = ("FILE", "CAPTURE", "RECORDING", "DIRECTORY")


def _value(variable, kind, words, standard, place):
    path = f"{place}/{variable}"
    if kind in CONTENTS:
        with open(path, "w", encoding="ascii") as file:
            file.write(CONTENTS[kind].format(place))
        os.chmod(path, 0o644)
    if kind in CONTENTS or kind in WRITTEN:
        return path
    return next(word for word in ("debug", *words.split()) if word != standard and word in words.split()) if kind == "CHOICE" else VALUES[kind]


def _settings(place):
    """Each setting that there is, with a value that does something; of a new type without one here, KeyError."""
    with open(LIST, encoding="utf-8") as file:
        found = re.findall(r'^SETTING\((\w+), "\w*", (\w+), "([^"]*)", "([^"]*)",', file.read(), re.M)
    assert len(found) > 30, found
    return {f"SOFTVERBS_{variable}": _value(variable, *rest, place) for variable, *rest in found}


def _inputs(settings, place):
    """The names of the files that are there for the program to read."""
    return sorted(name for name in os.listdir(place) if f"{place}/{name}" in settings.values())


def the_same_program_without_the_bit_obeys_its_user():
    _require_set_uid()
    place = _victims_place()
    settings = _settings(place)
    some = {name: settings[f"SOFTVERBS_{name}"] for name in ("LOG", "LOG_FILE", "COUNTERS", "CAPTURE", "RECORD", "DIR", "DEVICES", "NET", "LIMITS")}
    program = _Started(_program(False), **{f"SOFTVERBS_{name}": value for name, value in some.items()})
    assert program.said[:3] == [str(pwd.getpwnam(USER).pw_uid), "2", "2"], program.said
    assert "12B7" in program.udp_ports()
    program.end()
    assert {"LOG_FILE", "COUNTERS", "CAPTURE", "RECORD", "DIR"} <= set(os.listdir(place)), os.listdir(place)
    for name in ("INJECT", "SCRIPT"):
        program = _Started(_program(False), ends_as="refused", **{f"SOFTVERBS_{name}": settings[f"SOFTVERBS_{name}"]})
        program.end()


def a_set_uid_program_writes_no_file_and_opens_no_port_for_its_user():
    _require_set_uid()
    place = _victims_place()
    settings = _settings(place)
    there = _inputs(settings, place)
    without = _Started(_program(True))
    without.end()
    program = _Started(_program(True), **settings)
    assert program.said == without.said and program.said[:2] == ["0", "1"], (program.said, without.said)
    assert "12B7" not in program.udp_ports()
    program.end()
    assert sorted(os.listdir(place)) == there, os.listdir(place)


def _with_capabilities():
    """The plain program with CAP_DAC_OVERRIDE in its file, as setcap(8) writes it (struct vfs_cap_data, revision 2, effective)."""
    path = f"{TEMPORARY}/privileged/capable"
    if not os.path.exists(path):
        shutil.copy(_program(False), path)
        os.chmod(path, 0o755)
        try:
            os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, 1 << 1, 0, 0, 0))
        except OSError as error:
            raise Skip(f"this file system keeps no capabilities of files: {error}") from error
    return path


def _ask(*words):
    return softverbs(*words, user=USER, tool=f"{TEMPORARY}/installed/bin/softverbs", env={"SOFTVERBS_DIR": None, "XDG_RUNTIME_DIR": None})


def a_program_with_capabilities_answers_and_obeys_its_user_not():
    """The user may not trace the program either. The same program without them does both."""
    _require_set_uid()
    for program, obeys in ((_program(False), True), (_with_capabilities(), False)):
        started = _Started(program)
        one, = [one for one in json.loads(_ask("show", "--json").stdout) if one["pid"] == started.process.pid]
        assert one["answers"] is obeys and ("pds" in one) is obeys, one
        done = _ask("inject", str(started.process.pid), "when ibv_post_send: error ENOMEM")
        assert (done.returncode == 0) is obeys, told(done)
        started.end()


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
