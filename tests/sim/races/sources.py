"""The sources of a project at one of its commits, for races.py. A directory is brought from one commit to the next by the files that differ,
so that only these are compiled again."""
import io
import json
import os
import subprocess
import tarfile


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _put(path, content):
    if _read(path) == content:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def _members(checkout, commit, paths):
    archive = subprocess.run(["git", "archive", commit, *paths], cwd=checkout, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        for member in tar:
            if member.isfile():
                yield member.name, tar.extractfile(member).read()


def bring(checkout, commit, paths, place, edits=()):
    """Makes `place` the commit's paths, with the edits (PATH, BEFORE, AFTER); other files there, which are built ones, stay."""
    listed = f"{place}.files"
    before = json.loads(_read(listed) or b"[]")
    now = dict(_members(checkout, commit, paths))
    for path, old, new in edits:
        assert old.encode() in now[path], (path, old)
        now[path] = now[path].replace(old.encode(), new.encode(), 1)
    for path in set(before) - set(now):
        os.remove(f"{place}/{path}")
    for path, content in now.items():
        _put(f"{place}/{path}", content)
    _put(listed, json.dumps(sorted(now)).encode())
