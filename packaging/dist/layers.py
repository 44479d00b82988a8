#!/usr/bin/env python3
"""Unpacks a container image as a runtime does, and checks it on the way: layers.py IMAGE DIRECTORY

IMAGE is an archive in OCI's image layout. Each file has the checksum and the size that its descriptor has, each layer unpacked the checksum of the configuration.
Prints the command that the image starts, a word a line. Deletions by later layers (".wh." files) are not implemented and refused."""
import gzip
import hashlib
import io
import json
import sys
import tarfile


class Image:
    def __init__(self, path):
        self.archive = tarfile.open(path)
        index = self.json("index.json")
        if self.json("oci-layout") != {"imageLayoutVersion": "1.0.0"} or len(index["manifests"]) != 1:
            raise SystemExit(f"layers.py: {path} is no layout of one image")
        manifest = json.loads(self.blob(index["manifests"][0]))
        self.config = json.loads(self.blob(manifest["config"]))
        self.layers = manifest["layers"]

    def read(self, name):
        return self.archive.extractfile(name).read()

    def json(self, name):
        return json.loads(self.read(name))

    def blob(self, descriptor):
        content = self.read(f"blobs/{descriptor['digest'].replace(':', '/')}")
        found = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if (found, len(content)) != (descriptor["digest"], descriptor["size"]):
            raise SystemExit(f"layers.py: {descriptor['digest']} of {descriptor['size']} bytes has {len(content)} bytes and the checksum {found}")
        return content

    def unpack_layer(self, number, top):
        content = gzip.decompress(self.blob(self.layers[number]))
        found, listed = f"sha256:{hashlib.sha256(content).hexdigest()}", self.config["rootfs"]["diff_ids"][number]
        if found != listed:
            raise SystemExit(f"layers.py: layer {number} unpacked has the checksum {found}, the configuration has {listed}")
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            deleted = [name for name in archive.getnames() if name.rpartition("/")[2].startswith(".wh.")]
            if deleted:
                raise SystemExit(f"layers.py: layer {number} deletes {deleted[0]}")
            archive.extractall(top, numeric_owner=True)


def main():
    path, top = sys.argv[1:]
    image = Image(path)
    for number in range(len(image.layers)):
        image.unpack_layer(number, top)
    print(*image.config["config"]["Entrypoint"], *image.config["config"]["Cmd"], sep="\n")


if __name__ == "__main__":
    main()
