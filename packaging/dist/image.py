#!/usr/bin/env python3
"""Makes a container image of a portable tarball, without a daemon: image.py TARBALL ROOT DIRECTORY

ROOT is the tree of a system that the image starts from. The image is an archive in OCI's image layout (image-spec 1.1) of two layers, that system and softverbs in
/opt/softverbs: `podman load -i`, `docker load -i` (from 25 on), `skopeo copy oci-archive:...`. The same tree and the same tarball give the same bytes: entries are sorted,
no time is later than SOURCE_DATE_EPOCH, and what a system only collects (logs, caches, lists of packages) stays out."""
import gzip
import hashlib
import io
import json
import os
import re
import stat
import sys
import tarfile
import tempfile
import time

PLACE = "opt/softverbs"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
EMPTIED = re.compile(r"(dev|proc|sys|run|tmp|root|var/(cache|log|tmp)|var/lib/apt/lists|usr/share/(man|info|locale|lintian))/.+")
LEFT_OUT = re.compile(r"etc/(resolv\.conf|hostname|machine-id|\.pwd\.lock)|(etc|var/lib/dpkg)/[\w-]+(-|-old)|usr/share/doc/.+/(?!copyright$)[^/]+|.*\.pyc")


def cleaned(path, content):
    """The day on which a password was changed is the one on which the system was made."""
    if path != "etc/shadow":
        return content
    day = b"%d" % (int(os.environ["SOURCE_DATE_EPOCH"]) // 86400)
    return b"\n".join(b":".join([*line.split(b":")[:2], day, *line.split(b":")[3:]]) if line else line for line in content.split(b"\n"))


def paths_below(root):
    """Of files and directories, sorted; without what an image has no use for."""
    for directory, directories, files in os.walk(root):
        for name in directories + files:
            path = os.path.relpath(f"{directory}/{name}", root)
            kept = not EMPTIED.fullmatch(path) and (not LEFT_OUT.fullmatch(path) or os.path.isdir(f"{root}/{path}") and not os.path.islink(f"{root}/{path}"))
            if kept:
                yield path


def entry_of(root, path, seen):
    """The archive's entry of a file, and its content. The second name of a file is a link to the first."""
    status = os.lstat(f"{root}/{path}")
    entry, content = tarfile.TarInfo(path), None
    entry.mode, entry.uid, entry.gid = stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid
    entry.mtime = min(int(status.st_mtime), int(os.environ["SOURCE_DATE_EPOCH"]))
    if stat.S_ISDIR(status.st_mode):
        entry.type, entry.mtime = tarfile.DIRTYPE, int(os.environ["SOURCE_DATE_EPOCH"])
    elif stat.S_ISLNK(status.st_mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(f"{root}/{path}")
    elif not stat.S_ISREG(status.st_mode):
        return None, None
    elif (status.st_dev, status.st_ino) in seen:
        entry.type, entry.linkname = tarfile.LNKTYPE, seen[status.st_dev, status.st_ino]
    else:
        seen[status.st_dev, status.st_ino] = path
        with open(f"{root}/{path}", "rb") as file:
            content = cleaned(path, file.read())
        entry.size = len(content)
    return entry, content


def base_entries(root):
    seen = {}
    for path in sorted(paths_below(root)):
        entry, content = entry_of(root, path, seen)
        if entry:
            yield entry, content


def own_entries(tarball):
    """What the tarball has, below PLACE."""
    parent = tarfile.TarInfo(PLACE)
    parent.type, parent.mode, parent.mtime = tarfile.DIRTYPE, 0o755, int(os.environ["SOURCE_DATE_EPOCH"])
    yield parent, None
    with tarfile.open(tarball) as archive:
        for member in archive.getmembers():
            below = member.name.partition("/")[2]
            if below:
                content = archive.extractfile(member).read() if member.isfile() else None
                member.name, member.uname, member.gname = f"{PLACE}/{below}", "", ""
                member.linkname = f"{PLACE}/{member.linkname.partition('/')[2]}" if member.islnk() else member.linkname
                yield member, content


class Blobs:
    """The files of a layout, by their checksums."""

    def __init__(self, top):
        self.top = f"{top}/blobs/sha256"
        os.makedirs(self.top)

    def add(self, kind, content):
        digest = hashlib.sha256(content).hexdigest()
        with open(f"{self.top}/{digest}", "wb") as file:
            file.write(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    def add_layer(self, entries):
        """The layer's descriptor, and the checksum of what it holds unpacked."""
        plain = io.BytesIO()
        with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for entry, content in entries:
                archive.addfile(entry, io.BytesIO(content) if content is not None else None)
        packed = gzip.compress(plain.getvalue(), compresslevel=6, mtime=0)
        return self.add("layer.v1.tar+gzip", packed), f"sha256:{hashlib.sha256(plain.getvalue()).hexdigest()}"


def write_layout(top, version, machine, layers):
    """The files of the image in a directory; `layers`: for each the entries, and how it came to be."""
    blobs, made = Blobs(top), []
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    for entries, _ in layers:
        made.append(blobs.add_layer(entries))
    config = {"created": created, "architecture": ARCHITECTURES[machine], "os": "linux",
              "config": {"Env": [f"PATH=/{PLACE}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
                         "Entrypoint": ["softverbs", "run", "--"], "Cmd": ["ibv_devinfo"],
                         "Labels": {"org.opencontainers.image.title": "softverbs", "org.opencontainers.image.version": version,
                                    "org.opencontainers.image.licenses": "BSD-2-Clause"}},
              "rootfs": {"type": "layers", "diff_ids": [plain for _, plain in made]},
              "history": [{"created": created, "created_by": how} for _, how in layers]}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": blobs.add("config.v1+json", json.dumps(config).encode()), "layers": [layer for layer, _ in made]}
    listed = blobs.add("manifest.v1+json", json.dumps(manifest).encode())
    listed.update(platform={"architecture": ARCHITECTURES[machine], "os": "linux"}, annotations={"org.opencontainers.image.ref.name": f"softverbs:{version}"})
    for name, content in (("index.json", {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [listed]}),
                          ("oci-layout", {"imageLayoutVersion": "1.0.0"})):
        with open(f"{top}/{name}", "w", encoding="utf-8") as file:
            json.dump(content, file)


def pack(top, path):
    """The layout as one archive, that of `podman save --format oci-archive`."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(os.path.relpath(f"{directory}/{name}", top) for directory, _, names in os.walk(top) for name in names):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = os.path.getsize(f"{top}/{name}"), 0o644, int(os.environ["SOURCE_DATE_EPOCH"])
            with open(f"{top}/{name}", "rb") as file:
                archive.addfile(entry, file)


def main():
    tarball, root, directory = sys.argv[1:]
    version, machine = re.fullmatch(r"softverbs-(.+)-(\w+)\.tar\.gz", os.path.basename(tarball)).groups()
    path = f"{directory}/softverbs-{version}-{machine}.oci.tar"
    with tempfile.TemporaryDirectory() as top:
        write_layout(top, version, machine, [(base_entries(root), "a system of Debian"), (own_entries(tarball), os.path.basename(tarball))])
        pack(top, path)
    print(path)


if __name__ == "__main__":
    main()
