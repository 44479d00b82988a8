#!/usr/bin/env python3
"""softverbs run: the program's exit status, signals, streams and arguments are its own; complaints are sentences."""
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import PYTHON, SOFTVERBS, TEMPORARY, expect, run, softverbs, told


def exit_statuses_pass_through():
    for status in (0, 1, 2, 42, 125, 126, 127, 255):
        expect(run("sh", "-c", f"exit {status}"), status)


def no_process_stays_between_caller_and_program():
    with subprocess.Popen([SOFTVERBS, "run", "--", "sh", "-c", "echo $$"], stdout=subprocess.PIPE,
                          env=cases.environment()) as process:
        assert int(process.stdout.read()) == process.pid


def heed_interrupts():
    """A shell that runs us in the background has both ignored, and what is ignored stays so across exec."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def a_signal_reaches_the_program():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
        with subprocess.Popen([SOFTVERBS, "run", "--", "sh", "-c", "echo ready; exec sleep 30"], stdout=subprocess.PIPE,
                              env=cases.environment(), preexec_fn=heed_interrupts) as process:
            process.stdout.readline()
            process.send_signal(number)
            assert process.wait(10) == -number


def the_shell_sees_143_after_a_termination():
    done = subprocess.run(["sh", "-c", f"{SOFTVERBS} run -- sh -c 'kill -TERM $$'; echo $?"], capture_output=True,
                          env=cases.environment(), check=False)
    assert done.stdout == b"143\n", told(done)


def a_program_that_crashes_is_seen_to_crash():
    for number in (signal.SIGSEGV, signal.SIGABRT):
        expect(run(PYTHON, "-c", f"import os; os.kill(os.getpid(), {int(number)})"), -number)


def a_handled_signal_is_handled():
    script = "trap 'echo caught; exit 7' USR1; echo ready; while :; do sleep 0.1; done"
    with subprocess.Popen([SOFTVERBS, "run", "--", "sh", "-c", script], stdout=subprocess.PIPE,
                          env=cases.environment()) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.readline() == b"caught\n" and process.wait(10) == 7


def ignored_and_blocked_signals_stay_as_they_were():
    source = ("import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
              "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2]);"
              "os.execv(sys.argv[1], sys.argv[1:] + ['grep', '-E', '^Sig(Blk|Ign)', '/proc/self/status'])")
    alone, under = (subprocess.run([PYTHON, "-c", source, *command], capture_output=True, env=cases.environment(),
                                   check=False) for command in (["/usr/bin/env"], [SOFTVERBS, "run", "--"]))
    assert alone.stdout == under.stdout and under.stdout.count(b"\n") == 2, told(under)


def binary_data_passes_through_stdin_and_stdout():
    data = os.urandom(1 << 20)
    expect(run("cat", input=data), out=data)


def stdout_and_stderr_are_not_mixed():
    expect(run("sh", "-c", "echo out; echo err >&2"), out=b"out\n", err=b"err\n")


def closed_streams_stay_closed():
    for number in (0, 1, 2):
        script = f"{SOFTVERBS} run -- sh -c '! test -e /proc/$$/fd/{number}' {number}{'>' if number else '<'}&-"
        done = subprocess.run(["sh", "-c", script], env=cases.environment(), check=False)
        assert done.returncode == 0, f"descriptor {number} is open"


def no_descriptor_is_left_to_the_program():
    out = cases.python("import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))")
    assert out == "[0, 1, 2, 3]\n", out  # 3 is the listing itself


def open_descriptors_are_inherited():
    reading, writing = os.pipe()
    expect(run("sh", "-c", f"echo here >&{writing}", pass_fds=[writing]))
    assert os.read(reading, 10) == b"here\n"
    os.close(reading)
    os.close(writing)


def _on_terminal(*command):
    process, terminal = pty.fork()
    if process == 0:
        os.execve(SOFTVERBS, ["softverbs", "run", "--", *command], cases.environment())
    return process, terminal


def _read_until(terminal, word):
    text = b""
    while word not in text:
        text += os.read(terminal, 1000)
    return text


def a_terminal_is_the_programs_own():
    process, terminal = _on_terminal(PYTHON, "-c", "import os; print(os.isatty(0), os.isatty(1), os.isatty(2), "
                                     "os.tcgetpgrp(0) == os.getpgrp()); print('read', input())")
    _read_until(terminal, b"True True True True")
    os.write(terminal, b"line\n")
    _read_until(terminal, b"read line")
    assert os.waitpid(process, 0)[1] == 0


def control_c_on_the_terminal_interrupts_the_program():
    process, terminal = _on_terminal("sh", "-c", "echo ready; exec sleep 30")
    _read_until(terminal, b"ready")
    os.write(terminal, b"\x03")
    assert os.waitpid(process, 0)[1] == signal.SIGINT


def arguments_arrive_as_they_were_given():
    given = ["a b", "", "-x", "--", "--help", "*", "new\nline", "'\"", "é"]
    expect(run("printf", "[%s]", *given), out="".join(f"[{word}]" for word in given).encode())


def options_end_at_the_program_without_dashes_too():
    expect(softverbs("run", "printf", "%s", "-n"), out=b"-n")
    expect(softverbs("run", "--no-paths", "echo", "--log"), out=b"--log\n")


def a_program_may_be_called_like_an_option():
    shutil.copy("/bin/true", f"{TEMPORARY}/--help")
    expect(run("--help", env={"PATH": f"{TEMPORARY}:/bin"}), out=b"")


def a_missing_program_is_127():
    expect(run("no-such-program"), 127, b"", [b'no program "no-such-program"', b"$PATH"])
    expect(run("/no/such/program"), 127, b"", [b'no program "/no/such/program"'])


def a_missing_interpreter_is_127_and_named_as_the_cause():
    with open(f"{TEMPORARY}/script", "w", encoding="ascii") as script:
        script.write("#!/no/such/shell\n")
    os.chmod(f"{TEMPORARY}/script", 0o755)
    expect(run(f"{TEMPORARY}/script"), 127, b"", [b"interpreter"])


def a_file_that_is_not_executable_is_126():
    expect(run("/etc/passwd"), 126, b"", [b'"/etc/passwd"', b"Permission denied"])
    expect(run("/tmp"), 126, b"", [b'"/tmp"', b"Permission denied"])


def bad_options_are_2():
    expect(softverbs("run", "--no-such", "true"), 2, b"", [b"no option --no-such", b"softverbs help run"])
    expect(softverbs("run", "-x", "true"), 2, b"", [b"no option -x"])
    expect(softverbs("run", "--log"), 2, b"", [b"--log needs a value"])
    expect(softverbs("run", "--no-paths=yes", "true"), 2, b"", [b"--no-paths=yes"])
    expect(softverbs("run", "--log", "loud", "true"), 2, b"", [b'"loud"'])
    expect(softverbs("run", "--devices", "so/many", "true"), 2, b"", [b'"so/many"'])
    expect(softverbs("run", "--devices", "17", "true"), 2, b"", [b"at most 16 devices, not 17"])
    expect(softverbs("run", "--net", "nowhere0", "true"), 2, b"", [b'interface "nowhere0"'])
    expect(softverbs("run", "--link-layer", "token-ring", "true"), 2, b"", [b'"token-ring"', b"ib and ethernet"])
    expect(softverbs("run", "--link-layer", "ib", "--net", "lo", "true"), 2, b"", [b"InfiniBand", b'"lo"'])
    expect(softverbs("run", "--fault", "drop=5", "true"), 2, b"", [b'"5" is not a percentage', b"drop=1%,"])
    expect(softverbs("run", "--fault=loss=5%", "true"), 2, b"", [b'"loss" is not one of drop,'])
    expect(softverbs("run"), 2, b"", [b"It needs a program to run"])
    expect(softverbs("run", "--"), 2, b"", [b"It needs a program to run"])


class _Claimant:
    """A process that names itself as a user of lo's port, for another directory."""

    def __init__(self, text, user=None):
        source = ("import socket, sys; s = socket.socket(socket.AF_UNIX); "
                  "s.bind('\\0softverbs-4791 ' + str(socket.if_nametoindex('lo')) + ' 9:9 1 ' + sys.argv[1]); s.listen(); "
                  "print(flush=True); input()")
        self.process = subprocess.Popen([*cases.identity(user), PYTHON, "-c", source, text],  # pylint: disable=consider-using-with
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate(b"\n")


def another_user_who_names_itself_as_the_interfaces_keeps_nobody_off_it():
    with _Claimant("/somewhere", "nobody"):
        expect(softverbs("run", "--net", "lo", "true"))


FAMILIES = [socket.AF_INET, *([socket.AF_INET6] if os.path.exists("/proc/net/if_inet6") else [])]


def _holder(family, address, *options):
    """A socket that has the port."""
    holder = socket.socket(family, socket.SOCK_DGRAM)
    for option in options:
        holder.setsockopt(*option)
    holder.bind((address, 4791))
    return holder


def a_port_that_somebody_has_for_itself_is_told():
    """The program would only fail to open its device."""
    for family in FAMILIES:
        for address in ("::", "::1") if family == socket.AF_INET6 else ("0.0.0.0", "127.0.0.1"):
            with _holder(family, address):
                done = softverbs("run", "--net", "lo", "true")
            expect(done, 125, b"", [b"lo: Another user or program has UDP port 4791", b"doctor --net lo"])
    with _holder(socket.AF_INET, "0.0.0.0", (socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)):
        expect(softverbs("run", "--net", "lo", "true"))


def who_looks_at_the_port_takes_no_datagram_of_those_who_share_it():
    shared = [(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1), (socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")]
    for family in FAMILIES:
        ipv6 = family == socket.AF_INET6
        look = f"for i in $(seq 50); do {SOFTVERBS} run --net lo true; done"
        with _holder(family, "::" if ipv6 else "0.0.0.0", *shared, *([(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)] if ipv6 else [])) as device, \
                subprocess.Popen(["timeout", "30", "sh", "-c", look], env=cases.environment()) as looking:
            device.settimeout(5)
            while looking.poll() is None:
                with socket.socket(family, socket.SOCK_DGRAM) as sender:
                    sender.sendto(b"datagram", ("::1" if ipv6 else "127.0.0.1", 4791))
                assert device.recv(100) == b"datagram"
            assert looking.returncode == 0


def what_others_have_chosen_does_nothing_to_a_terminal():
    with _Claimant("\x1b[31m\x1b]0;pwned\x07"):
        expect(softverbs("run", "--net", "lo", "true"), 125, b"", [b"?[31m?]0;pwned?"])
    expect(softverbs("run", "no\x1bsuch"), 127, b"", [b'"no?such"'])
    done = run("ibv_devinfo", env={"SOFTVERBS_LOG": "error", "SOFTVERBS_LIMITS": "a\x1b[31m=1"})
    assert b"a?[31m" in done.stderr and b"\x1b" not in done.stderr, told(done)


def a_counters_line_is_one_json_object_whatever_the_programs_name():
    program, counters = f'{TEMPORARY}/a","pid":1,"b\x1b', f"{TEMPORARY}/counters"
    if not shutil.which("ibv_devinfo"):
        raise cases.Skip("ibv_devinfo is not installed")
    shutil.copy(shutil.which("ibv_devinfo"), program)
    expect(softverbs("run", "--counters", counters, program), err=None)
    with open(counters, encoding="utf-8") as lines:
        line, = lines
    pairs = json.loads(line, object_pairs_hook=list)
    assert dict(pairs)["program"] == os.path.basename(program) and [key for key, _ in pairs].count("pid") == 1, line


BAD_SETTINGS = (("SOFTVERBS_FAULT", "drop=xx", b"drop=xx"), ("SOFTVERBS_LIMITS", "max_foo=4", b"max_foo"),
                ("SOFTVERBS_LIMITS", "max_sge=99", b"max_sge=99"), ("SOFTVERBS_CONFIG", "/nonexistent", b"/nonexistent"),
                ("SOFTVERBS_NET", "nonesuch", b"nonesuch"), ("SOFTVERBS_COUNTERS", "/nonexistent/x", b"/nonexistent/x"),
                ("SOFTVERBS_LOG", "loud", b"loud"), ("SOFTVERBS_LOG_FILE", "/nonexistent/x", b"/nonexistent/x"),
                ("SOFTVERBS_DEVICES", "9999", b"9999"), ("SOFTVERBS_DEVICES", "a/b", b'"a/b"'),
                ("SOFTVERBS_CAPTURE", "/nonexistent/x", b"/nonexistent/x"), ("SOFTVERBS_CAPTURE_MAX", "much", b"much"),
                ("SOFTVERBS_CONFIG", "/etc", b"directory"), ("SOFTVERBS_COUNTERS", "/etc", b"directory"),
                ("SOFTVERBS_LOG_FILE", "/etc", b"directory"), ("SOFTVERBS_DEVICES", "a,b,a", b'"a"'))


def devices_have_the_names_that_the_user_gives():
    """Some programs have a device's name in their code."""
    done = softverbs("run", "--devices", "mlx5_0,mlx5_1", "ls", "/sys/class/infiniband")
    expect(done, out=b"mlx5_0\nmlx5_1\n")


def a_slip_in_the_name_of_a_setting_is_refused():
    for slip, meant in (("SOFTVERBS_FAULTS", b"SOFTVERBS_FAULT is one"), ("SOFTVERBS_DEVICE", b"SOFTVERBS_DEVICES is one"), ("SOFTVERBS_DIRS", b"SOFTVERBS_DIR is one"),
                        ("SOFTVERBS_LINKLAYER", b"SOFTVERBS_LINK_LAYER is one"), ("SOFTVERBS_CAPTUER", b"SOFTVERBS_CAPTURE is one")):
        expect(run("true", env={slip: "1"}), 2, b"", [slip.encode() + b" is not a setting; " + meant])
    for other in ("SOFTVERBS_TARBALL", "SOFTVERBS_INPUT_OPTIONS", "SOFTVERBS_OF_THE_USER"):
        expect(run("true", env={other: "1"}))


def a_setting_that_cannot_be_used_is_refused():
    for name, value, part in BAD_SETTINGS:
        done = expect(run("true", env={name: value}), 2, b"", [b"softverbs: run: ", part])
        assert b"ignored" not in done.stderr, done.stderr  # as nothing ran
    with open(f"{TEMPORARY}/bad", "w", encoding="ascii") as config:
        config.write("fault = drop=xx\n")
    expect(run("true", env={"SOFTVERBS_CONFIG": f"{TEMPORARY}/bad"}), 2, b"", [b"drop=xx"])
    with open(f"{TEMPORARY}/bad", "w", encoding="ascii") as config:
        config.write(f"max_sge = 4\n# {'long ' * 100}\nmax_sge = 99\n")
    expect(run("true", env={"SOFTVERBS_CONFIG": f"{TEMPORARY}/bad"}), 2, b"", [f"{TEMPORARY}/bad:3: limit max_sge=99".encode()])
    with open(f"{TEMPORARY}/bad", "w", encoding="ascii") as config:
        config.write(f"# {'x' * 20000}\ncapture = {'x' * 20000}\n")
    expect(run("true", env={"SOFTVERBS_CONFIG": f"{TEMPORARY}/bad"}), 2, b"", [f"{TEMPORARY}/bad:2: the line has more".encode()])
    expect(run("true", env={"SOFTVERBS_CONFIG": "/dev/zero"}))
    expect(softverbs("run", "--counters", "/nonexistent/x", "true"), 2, b"", [b"/nonexistent/x"])
    expect(softverbs("run", "--capture", "/nonexistent/x", "true"), 125, b"", [b"/nonexistent/x"])


def an_option_with_an_empty_value_is_refused():
    """A variable of a shell that was never set; the program would run without what was asked for."""
    for option in ("pci", "net", "fault", "devices", "dir", "capture", "record", "counters", "story", "log-file", "script", "inject", "profile", "schedule",
                   "check-report", "check-suppressions", "trace-file"):
        for words in ((f"--{option}", ""), (f"--{option}=",)):
            expect(softverbs("run", *words, "true"), 2, b"", [f"The value of --{option} is empty. Leave the option out".encode()])
    expect(softverbs("env", "--net", ""), 2, b"(exit 2)\n", [b"The value of --net is empty", b"softverbs help env"])
    expect(run("true", env={"SOFTVERBS_NET": "", "SOFTVERBS_FAULT": "", "SOFTVERBS_PCI": ""}))


def named_pipes_stop_nobody():
    pipe = f"{TEMPORARY}/pipe"
    os.mkfifo(pipe)
    expect(run("true", env={"SOFTVERBS_CONFIG": pipe}), 2, b"", [b"SOFTVERBS_CONFIG"])
    devices = [PYTHON, "-c", "import ctypes; ctypes.CDLL('libibverbs.so.1').ibv_get_device_list(None)"]
    expect(run(*devices, env={"SOFTVERBS_COUNTERS": pipe}))
    done = expect(run(*devices, env={"SOFTVERBS_LOG": "error", "SOFTVERBS_LOG_FILE": pipe}), err=None)
    assert b"logging to stderr" in done.stderr, told(done)


def files_count_from_where_run_was_started():
    os.makedirs(f"{TEMPORARY}/began/below")
    source = "import ctypes, os; os.chdir('below'); ctypes.CDLL('libibverbs.so.1').ibv_get_device_list(None)"
    expect(softverbs("run", "--log", "debug", "--log-file", "log", PYTHON, "-c", source, cwd=f"{TEMPORARY}/began"))
    assert os.listdir(f"{TEMPORARY}/began/below") == [] and os.path.exists(f"{TEMPORARY}/began/log")


def a_setting_that_cannot_be_used_is_a_problem_to_the_doctor():
    for name, value, part in BAD_SETTINGS:
        done = softverbs("doctor", env={name: value})
        lines = [line for line in done.stdout.splitlines() if line.startswith(b"problem  settings")]
        assert done.returncode == 1 and len(lines) == 1 and part in lines[0], told(done)


def settings_that_are_empty_or_right_are_taken():
    for name, value, _ in BAD_SETTINGS:
        expect(run("true", env={name: ""}))
    expect(run("true", env={"SOFTVERBS_DEVICES": "soft1", "SOFTVERBS_NET": ","}))  # the second is soft2
    expect(run("true", env={"SOFTVERBS_COUNTERS": f"{TEMPORARY}/fresh", "SOFTVERBS_FAULT": "drop=1%", "SOFTVERBS_LOG": "warn"}))


def a_library_without_run_warns_of_settings():
    source = "import ctypes; v = ctypes.CDLL('libibverbs.so.1'); v.ibv_get_device_list(None); v.ibv_get_device_list(None)"
    command = ["env", "SOFTVERBS_LIMITS=max_foo=4", PYTHON, "-c", source]
    done = run(*command)
    assert done.returncode == 0 and done.stderr.count(b"limit \"max_foo\": there is no such limit; it is ignored") == 1, told(done)
    expect(softverbs("run", "--quiet", "--", *command), err=b"")


def options_become_environment_variables():
    script = "echo $SOFTVERBS_DEVICES $SOFTVERBS_LOG $SOFTVERBS_LOG_FILE $SOFTVERBS_DIR"
    done = softverbs("run", "--devices", "3", "--log", "info", f"--log-file={TEMPORARY}/log", "--dir", f"{TEMPORARY}/d", "--",
                     "sh", "-c", script)
    expect(done, out=f"3 info {TEMPORARY}/log {TEMPORARY}/d\n".encode())


def library_paths_go_in_front_and_stay_short():
    script = "echo $LD_LIBRARY_PATH; echo $LD_PRELOAD"
    lib = f"{cases.BUILD}/lib"
    preloaded = f"{lib}/libsoftverbs-paths.so:{lib}/libibverbs.so.1"
    expect(run("sh", "-c", script), out=f"{lib}\n{preloaded}\n".encode())
    expect(run("sh", "-c", script, env={"LD_LIBRARY_PATH": "/a:/b"}), out=f"{lib}:/a:/b\n{preloaded}\n".encode())
    expect(run(SOFTVERBS, "run", "sh", "-c", script), out=f"{lib}\n{preloaded}\n".encode())
    expect(softverbs("run", "--no-paths", "sh", "-c", script), out=f"{lib}\n\n".encode())


def what_the_user_preloads_stands_before_the_verbs():
    """A library that wraps functions of the verbs is still asked first."""
    lib = f"{cases.BUILD}/lib"
    own = f"{lib}/libibverbs.so"  # some library that loads
    done = run(SOFTVERBS, "run", "sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": own})
    expect(done, out=f"{lib}/libsoftverbs-paths.so:{own}:{lib}/libibverbs.so.1\n".encode())


def it_works_installed_and_through_a_link():
    tool = cases.installed(f"{TEMPORARY}/usr")
    os.symlink(tool, f"{TEMPORARY}/link")
    for path in (tool, f"{TEMPORARY}/link"):
        done = softverbs("run", "sh", "-c", "echo $LD_LIBRARY_PATH; stat -c %F /dev/infiniband/uverbs0", tool=path)
        expect(done, out=f"{TEMPORARY}/usr/{cases.LIBRARY}\ncharacter special file\n".encode())


def it_works_from_a_path_with_a_blank():
    tool = cases.installed(f"{TEMPORARY}/a b")
    expect(softverbs("run", "stat", "-c", "%F", "/dev/infiniband/uverbs0", tool=tool), out=b"character special file\n")


def a_path_that_the_linker_cannot_use_is_refused():
    tool = cases.installed(f"{TEMPORARY}/a:b")
    expect(softverbs("run", "true", tool=tool), 125, b"", [b"colon"])


def without_its_libraries_it_says_so():
    os.makedirs(f"{TEMPORARY}/alone")
    shutil.copy(SOFTVERBS, f"{TEMPORARY}/alone")
    expect(softverbs("run", "true", tool=f"{TEMPORARY}/alone/softverbs"), 125, b"", [b"libraries", b"where they should be"])
    tool = cases.installed(f"{TEMPORARY}/half")
    os.unlink(f"{TEMPORARY}/half/{cases.LIBRARY}/libibverbs.so.1")
    expect(softverbs("run", "true", tool=tool), 125, b"", [b"libraries", b"where they should be"])


def libraries_that_others_could_change_are_not_used():
    if os.geteuid() != 0:
        raise cases.Skip("only root can make a directory of another user")
    with tempfile.TemporaryDirectory(dir="/tmp") as shared:
        os.chmod(shared, 0o1777)
        shutil.copy(SOFTVERBS, shared)
        shutil.copytree(os.path.dirname(cases.installed(f"{TEMPORARY}/trusted")) + f"/../{cases.LIBRARY}", f"{shared}/lib", symlinks=True)
        started = lambda: softverbs("run", "true", tool=f"{shared}/softverbs")
        expect(started())
        for path in (f"{shared}/lib", os.path.realpath(f"{shared}/lib/libibverbs.so.1")):
            os.chown(path, 65534, 65534)
            expect(started(), 125, b"", [b"belong to another user"])
            os.chown(path, 0, 0)
            os.chmod(path, 0o777)
            expect(started(), 125, b"", [b"belong to another user"])
            os.chmod(path, 0o755)
        expect(started())
        os.chmod(shared, 0o777)
        expect(started(), 125, b"", [b"belong to another user"])


def _at(directory, **options):
    return softverbs("run", "--dir", directory, "echo", "started", **options)


def an_unusable_directory_is_a_sentence_before_the_start():
    expect(_at("/proc/softverbs"), 125, b"", [b"/proc/softverbs", b"."])
    expect(_at(f"{TEMPORARY}/no/such/parent"), 125, b"", [b"no/such/parent", b"."])
    expect(_at(f"/{'x' * 200}"), 125, b"", [b"."])
    with open(f"{TEMPORARY}/file", "wb"):
        expect(_at(f"{TEMPORARY}/file"), 125, b"", [f"{TEMPORARY}/file".encode(), b"not a directory"])


def an_unwritable_directory_is_a_sentence_too():
    tool = cases.installed(f"{TEMPORARY}/readable")
    os.makedirs(f"{TEMPORARY}/locked", mode=0o755)
    expect(_at(f"{TEMPORARY}/locked/node", tool=tool, user="nobody"), 125, b"", [b"locked/node", b"Permission denied"])


def a_directory_of_others_is_not_used():
    """One that is open to all is another thing: containers_test.py."""
    os.makedirs(f"{TEMPORARY}/open")
    for mode in (0o755, 0o1777):
        os.chmod(f"{TEMPORARY}/open", mode)
        expect(_at(f"{TEMPORARY}/open"), 125, b"", [b"0700"])
    if os.geteuid() == 0:
        os.mkdir(f"{TEMPORARY}/theirs", 0o700)
        os.chown(f"{TEMPORARY}/theirs", 65534, 65534)
        expect(_at(f"{TEMPORARY}/theirs"), 125, b"", [b"belongs to user 65534"])


def a_directory_of_another_version_is_replaced_unless_it_is_in_use():
    directory = f"{TEMPORARY}/old"
    os.mkdir(directory, 0o700)
    with open(f"{directory}/table", "w+b") as table:
        table.write(b"another version's" * 100)
        table.flush()
        fcntl.lockf(table, fcntl.LOCK_EX, 1)
        expect(_at(directory), 125, b"", [directory.encode(), b"another version"])
        fcntl.lockf(table, fcntl.LOCK_UN)
        expect(_at(directory), 0, b"started\n")
    expect(_at(directory), 0, b"started\n")


def limits_can_be_lowered_and_raised_as_far_as_they_can_be():
    shown = "max_qp_wr", "max_qp_rd_atom", "max_qp_init_rd_atom", "max_res_rd_atom"
    for limits, values in (("", (32768, 128, 128, 128 * 65536)), ("max_qp_wr=7,max_rd_atomic=1", (7, 1, 1, 65536)),
                           ("max_qp_wr=1048576,max_rd_atomic=255", (1 << 20, 255, 255, 255 * 65536)),
                           ("max_qp_wr=1048577,max_rd_atomic=256,max_sge=33", (32768, 128, 128, 128 * 65536)),
                           ("max_rd_atomic=255,max_qp=16776960", (32768, 255, 255, 2**31 - 1))):
        out = run("env", f"SOFTVERBS_LIMITS={limits}", "ibv_devinfo", "-v").stdout.decode()
        for name, value in zip(shown, values):
            assert re.search(rf"^\s*{name}:\s*{value}$", out, re.MULTILINE), (limits, name, value, out)


def long_settings_are_refused_or_cut_but_do_no_harm():
    for name in ("LIMITS", "DEVICES", "NET", "FAULT"):
        for text in ("x" * 100_000, "net=" + "x" * 5000, "x=" * 5000, ",".join(["eth0"] * 500)):
            done = run("ibv_devices", env={f"SOFTVERBS_{name}": text})
            assert done.returncode >= 0, (name, text[:20], told(done))


def run_leaves_no_process_in_the_directory():
    expect(run("true"))
    expect(softverbs("show"), out=b"No process has a softverbs device open. Start one: softverbs run -- PROGRAM\n")
    left = [name for name in os.listdir(cases.DIRECTORY) if not name.startswith("last-")]  # the last lines of the cases before
    assert left == ["table"], left


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
