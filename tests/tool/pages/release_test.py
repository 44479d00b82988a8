#!/usr/bin/env python3
"""tools/release and .github/workflows/release.yml, on a small tree with the files that have the version. The steps of the workflow run; what they install, build and
publish is written down only."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases
from cases import TEMPORARY, TREE, Skip, told

FILES = ("meson.build", "python/pyproject.toml", "debian/changelog", "debian/control", "tools/release/release.py", ".github/workflows/release.yml")
GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
       "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}


def _read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def _write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _git(tree, *words):
    return subprocess.run(["git", "-C", tree, *words], check=True, capture_output=True, text=True, env={**os.environ, **GIT}).stdout.strip()


def _tree(name, changes="## Unreleased\n\n- One line.\n\n## 0.1.0\n\n- Old.\n"):
    """A repository with the files that a release changes; its `make dist` leaves a file that says so."""
    tree = f"{TEMPORARY}/{name}"
    for path in FILES:
        os.makedirs(os.path.dirname(f"{tree}/{path}"), exist_ok=True)
        shutil.copy(f"{TREE}/{path}", f"{tree}/{path}")
    _write(f"{tree}/CHANGELOG.md", f"# Changes\n\n{changes}")
    _write(f"{tree}/Makefile", "dist:\n\tmkdir -p dist && git describe --exact-match >dist/softverbs.txt\n")
    _write(f"{tree}/.gitignore", "/dist\n")
    _git(tree, "init", "-q")
    _git(tree, "add", ".")
    _git(tree, "commit", "-q", "-m", "tree")
    return tree


def _release(tree, *words, status=0):
    done = subprocess.run([f"{tree}/tools/release/release.py", *words], capture_output=True, check=False, env={**os.environ, **GIT}, cwd="/")
    assert done.returncode == status, told(done)
    return done.stdout.decode() + done.stderr.decode()


def a_release_is_one_command():
    tree = _tree("tree")
    said = _release(tree, "make", "9.8.7")
    assert "git push origin HEAD v9.8.7" in said, said
    assert "  version: '9.8.7'," in _read(f"{tree}/meson.build") and 'version = "9.8.7"' in _read(f"{tree}/python/pyproject.toml")
    assert _read(f"{tree}/CHANGELOG.md").startswith("# Changes\n\n## 9.8.7\n\n- One line.\n\n## 0.1.0")
    entry = _read(f"{tree}/debian/changelog")
    assert re.match(r"softverbs \(9\.8\.7\) unstable; urgency=medium\n\n  \* .*\n\n -- .* <.*>  \w{3}, \d\d \w{3} \d{4} [\d:]{8} \+0000\n\nsoftverbs \(", entry), entry
    assert _git(tree, "status", "--porcelain") == "" and _git(tree, "log", "-1", "--format=%s") == "release: number the tree 9.8.7"
    assert _git(tree, "cat-file", "-t", "v9.8.7") == "tag" and "- One line." in _git(tree, "tag", "-n9", "v9.8.7")
    assert _read(f"{tree}/dist/softverbs.txt") == "v9.8.7\n"
    _release(tree, "check", "v9.8.7")
    assert _release(tree, "notes", "v9.8.7") == "- One line.\n"


def a_tree_that_has_the_number_is_tagged_as_it_is():
    tree = _tree("numbered")
    version = re.search(r"version: '(.*)'", _read(f"{tree}/meson.build"))[1]
    _write(f"{tree}/CHANGELOG.md", f"# Changes\n\n## {version}\n\nThe first.\n")
    _git(tree, "commit", "-qam", "changes")
    before = _git(tree, "rev-parse", "HEAD")
    _release(tree, "make", version, "--no-dist")
    assert _git(tree, "rev-parse", f"v{version}^{{commit}}") == before and not os.path.exists(f"{tree}/dist")


def what_cannot_be_released_is_refused_and_changes_nothing():
    tree = _tree("refused")
    _git(tree, "tag", "v9.9.9")
    for version, why in (("0.0.1", "is older than the tree"), ("9.9.9", "is there already"), ("next", "is no version"), ("1.2", "is no version")):
        assert why in _release(tree, "make", version, status=1), version
    _write(f"{tree}/meson.build", _read(f"{tree}/meson.build") + "\n")
    assert "1 files have changes" in _release(tree, "make", "9.9.8", status=1)
    _git(tree, "checkout", "-q", ".")
    assert _git(tree, "tag") == "v9.9.9" and _git(tree, "rev-list", "--count", "HEAD") == "1" and _git(tree, "status", "--porcelain") == ""
    for changes in ("## 9.9.7\n\n- Other.\n", "## Unreleased\n\n## 0.1.0\n\n- Old.\n"):
        assert "newest section of CHANGELOG.md" in _release(_tree(f"refused{len(changes)}", changes), "make", "9.9.8", status=1)


def a_tag_of_another_version_is_found():
    tree = _tree("checked")
    said = _release(tree, "check", "v9.9.9", status=1)
    assert "the tag is v9.9.9, and meson.build has the version" in said, said
    assert 'no section "## 9.9.9"' in _release(tree, "notes", "v9.9.9", status=1)


def this_tree_has_one_version():
    version = re.search(r"version: '(.*)'", _read(f"{TREE}/meson.build"))[1]
    _release(TREE, "check", f"v{version}")


def _workflow():
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise Skip("python3-yaml is not installed") from None
    return yaml.safe_load(_read(f"{TREE}/.github/workflows/release.yml"))


def _follow(workflow, tree, tag):
    """Runs the steps as a runner does, up to one that fails; the commands of `recorded` only write themselves down. The lines that they wrote."""
    place = f"{tree}.runner"
    os.makedirs(f"{place}/bin")
    for name in ("apt-get", "gh"):
        _write(f"{place}/bin/{name}", f'#!/bin/sh\necho "{name} $*" >>{place}/asked\n')
        os.chmod(f"{place}/bin/{name}", 0o755)
    environment = {**os.environ, **GIT, "GIT_CONFIG_GLOBAL": f"{place}/gitconfig", "HOME": place, "PATH": f"{place}/bin:{os.environ['PATH']}", "GITHUB_REF_NAME": tag, "GITHUB_WORKSPACE": tree, "RUNNER_TEMP": place}
    for step in workflow["jobs"]["release"]["steps"]:
        if "run" in step:
            done = subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], cwd=tree, capture_output=True, check=False, env=environment)
            if done.returncode:
                return _read(f"{place}/asked").splitlines(), told(done)
    return _read(f"{place}/asked").splitlines(), None


def the_steps_of_the_workflow_publish_the_files():
    workflow, tree = _workflow(), _tree("pushed")
    assert workflow[True]["push"]["tags"] == ["v[0-9]*"] and workflow["permissions"] == {"contents": "write"}, workflow  # "on" is true in YAML 1.1
    _release(tree, "make", "9.8.7", "--no-dist")
    asked, why = _follow(workflow, tree, "v9.8.7")
    assert not why, why
    assert asked[-1].startswith("gh release create v9.8.7 --verify-tag ") and asked[-1].endswith("dist/softverbs.txt"), asked
    assert _read(f"{tree}.runner/notes.md") == "- One line.\n"


def a_tag_that_is_not_the_trees_publishes_nothing():
    tree = _tree("wrong")
    asked, why = _follow(_workflow(), tree, "v9.8.7")
    assert why and "the tag is v9.8.7" in why and not [line for line in asked if line.startswith("gh")], (asked, why)


if __name__ == "__main__":
    cases.main(sys.modules[__name__])
