"""gdb with the commands of lib/softverbs-gdb.py, for the tests of it."""
import os
import shutil
import subprocess

from cases import BUILD, TEMPORARY, Skip, environment, patience

SCRIPT = f"{BUILD}/lib/softverbs-gdb.py"
os.environ["MALLOC_ARENA_MAX"] = "1"  # gdb writes what other arenas have only reserved, 64 MiB a thread


def gdb(*commands, program, symbols="off", script=SCRIPT):
    """The output of gdb; the commands of softverbs are there."""
    if not shutil.which("gdb"):
        raise Skip("gdb is not installed")
    arguments = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load no", "-iex", f"set auto-solib-add {symbols}",
                 "-x", script, program]
    for command in commands:
        arguments += ["-ex", command]
    done = subprocess.run(arguments, capture_output=True, timeout=patience(120), check=False, stdin=subprocess.DEVNULL, env=environment())
    if b"ptrace: Operation not permitted" in done.stderr:
        raise Skip("this machine lets no debugger attach")
    if b"Python scripting is not supported" in done.stderr:
        raise Skip("gdb has no Python")
    return done.stdout.decode(), done.stderr.decode()


def dump(*processes, program):
    """Core files of these, which are stopped for it, and not disturbed."""
    paths = [f"{TEMPORARY}/core-{pid}" for pid in processes if os.path.exists(f"/proc/{pid}")]
    for path in paths:  # private memory and the heads of files only, of what the kernel writes without being asked
        with open(f"/proc/{path.rsplit('-', 1)[1]}/coredump_filter", "w", encoding="utf-8") as kept:
            kept.write("0x11")
    commands = [command for path in paths for command in
                (f"attach {path.rsplit('-', 1)[1]}", f"generate-core-file {path}", "detach")]
    said = gdb(*commands, program=program)
    assert all(os.path.exists(path) for path in paths), said[1][-1000:]
    return paths
