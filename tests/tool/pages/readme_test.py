"""The commands of the README, unchanged: for CI, installing, the manual, removing."""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
import installation
from cases import BUILD, TEMPORARY, TREE, Skip, told


def _text():
    with open(f"{TREE}/README.md", encoding="utf-8") as file:
        return file.read()


def _chapter(heading):
    return _text().split(f"\n## {heading}\n")[1].split("\n## ")[0]


def _indented(text):
    return "".join(line[4:] + "\n" for line in text.splitlines() if line.startswith("    "))


def _command(command, **extra):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=cases.patience(100), cwd=TREE,
                          env=cases.environment(**extra))


def the_first_command_works_as_it_is_typed():
    first = _indented(_text().split("\n## ")[0])
    server, client = (line.split("#")[0].strip() for line in first.splitlines())
    assert client.startswith(server), first
    if not shutil.which(server.split()[-1]):
        raise Skip(f"{server.split()[-1]} is not installed")
    path = f"{BUILD}:{os.environ['PATH']}"
    with subprocess.Popen(["bash", "-c", f"exec {server}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=cases.environment(PATH=path)) as process:
        for _ in range(50):
            done = _command(["bash", "-c", client], PATH=path)
            if done.returncode == 0 or process.poll() is not None:
                break
            time.sleep(0.2)
        process.kill()
    assert done.returncode == 0 and "BW average" in done.stdout, told(done)


def a_line_of_code_has_one_command_and_fits_its_column():
    for line in _indented(_text()).splitlines():
        assert line.count("softverbs run") <= 1, line
        assert len(line) <= 80 or line.lstrip().startswith("$"), line  # of what is shown on the screen, too


def the_picture_computes():
    """As ibv_rc_pingpong does: each iteration carries the message there and back. Its times are rounded."""
    with open(f"{TREE}/{re.search(r'!.*?[(](.*?)[)]', _text().split(chr(10) + '## ')[0])[1]}", encoding="utf-8") as file:
        sample = re.sub(r"<[^>]*>", "", file.read())
    size, count = (int(re.search(rf" -{option} (\d+)", sample)[1]) for option in "sn")
    sent, seconds, rate = re.search(r"(\d+) bytes in ([\d.]+) seconds = ([\d.]+) Mbit/sec", sample).groups()
    iterations, same, each = re.search(r"(\d+) iters in ([\d.]+) seconds = ([\d.]+) usec/iter", sample).groups()
    microseconds = int(iterations) * float(each)
    assert int(iterations) == count and int(sent) == 2 * size * count, sample
    assert seconds == same == f"{microseconds / 1e6:.2f}" and abs(float(rate) * microseconds / (int(sent) * 8) - 1) < 0.001, sample


def it_says_what_a_newcomer_asks():
    start, install = _chapter("Quick start"), " ".join(_chapter("Install").split())
    assert "`softverbs why`" in start, start
    assert all(word in install for word in ("root", "Debian", "debootstrap")), install
    assert "not on an adapter" in _text().split("\n## ")[0] and re.search(r"^\| Real adapters \|", _text(), re.MULTILINE)


def it_is_short():
    text = _text()
    cells = [cell.strip() for line in text.splitlines() if line.startswith("|") for cell in line.split("|")]
    assert len(text.splitlines()) <= 120 and len(text.split()) <= 900, (len(text.splitlines()), len(text.split()))
    assert not [cell for cell in cells if len(cell) > 100], [cell for cell in cells if len(cell) > 100]


def the_lines_on_faults_run():
    script = _indented(_chapter("Faults on demand"))
    if not shutil.which("ib_send_bw"):
        raise Skip("perftest is not installed")
    done = _command(["bash", "-e", "-c", f"{script}wait"], PATH=f"{BUILD}:{os.environ['PATH']}")
    assert done.returncode == 0 and done.stdout.count("BW average") == 2 and "216" in done.stdout, told(done)


def the_lines_for_CI_run():
    script = _indented(_chapter("In CI"))
    assert "softverbs env" in script, script
    done = _command(["bash", "-e", "-c", script], PATH=f"{BUILD}:{os.environ['PATH']}")
    assert done.returncode == 0 and re.search(r"hca_id:\s+soft0", done.stdout), told(done)


def _installs(root):
    """As the README says. make knows build/ alone; meson installs other builds."""
    if BUILD != f"{TREE}/build":
        return installation.install(BUILD, root)
    done = _command(["make", "install", f"DESTDIR={root}"])
    assert done.returncode == 0, told(done)
    return None


def _is_removed(root):
    if BUILD != f"{TREE}/build":
        raise Skip("make uninstall is for what make install has installed from build/")
    removed = _command(["make", "uninstall", f"DESTDIR={root}"])
    left = [f"{folder}/{name}" for folder, _, names in os.walk(root) for name in names]
    assert removed.returncode == 0 and not left, (told(removed), left)


def _works(root):
    command = next(f"{folder}/softverbs" for folder, _, names in os.walk(root) if folder.endswith("/bin") and "softverbs" in names)
    pages = os.path.dirname(os.path.dirname(command)) + "/share/doc/softverbs"
    for page in ("README.md", "docs/how-to/debugging.md", "examples/first_connection.c"):
        assert os.path.exists(f"{pages}/{page}"), page
    with open(f"{pages}/docs/reference/reasons.md", encoding="utf-8") as file:
        assert "\n### 216 RECEIVER_NOT_READY\n" in file.read()
    links = _command([sys.executable, f"{TREE}/tools/build/links.py", pages])
    assert links.returncode == 0, links.stdout
    version = _command([command, "version"])
    assert version.returncode == 0 and version.stdout.startswith("softverbs "), told(version)
    if not shutil.which("man"):
        raise Skip("man-db is not installed")
    pages = os.path.dirname(os.path.dirname(command)) + "/share/man"
    for page in ("softverbs", "softverbs.conf"):
        shown = _command(["man", "-M", pages, page], MANPAGER="cat", MANWIDTH="80")
        assert shown.returncode == 0 and "NAME" in shown.stdout and page in shown.stdout, told(shown)


def what_make_installs_has_a_manual_and_can_be_removed():
    assert "`make install`" in _chapter("Install") and "man softverbs" in _chapter("Install")
    root = f"{TEMPORARY}/root"
    with contextlib.nullcontext() if BUILD != f"{TREE}/build" else installation.alone(BUILD):
        _installs(root)
        _works(root)
        _is_removed(root)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
