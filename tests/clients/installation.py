"""The build as `make install` lays it out, below a directory of a test."""
import contextlib
import fcntl
import os
import subprocess


@contextlib.contextmanager
def alone(build):
    """No other test installs the build meanwhile: meson notes the files of the last installation alone, and `make uninstall` reads
    these notes."""
    notes = os.open(f"{build}/meson-logs", os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(notes, fcntl.LOCK_EX)
        yield
    finally:
        os.close(notes)


def install(build, to, *options):
    """Installs the build below the directory."""
    with alone(build):
        subprocess.run(["meson", "install", "--no-rebuild", "--quiet", *options, "-C", build, "--destdir", to], check=True, stdout=subprocess.DEVNULL)
