#!/usr/bin/env python3
"""Writes what a release consists of, as SPDX 2.3 in JSON: sbom.py VERSION DIRECTORY

It lists the files of the directory with their checksums, and the two libraries that the tarballs and the wheels contain; all else that they need is the C
library. The versions of the libraries are those of the systems that the tarballs were built on (dist.sh), of which that for musl is another one."""
import hashlib
import json
import os
import sys
import time

CONTAINED = {"libdeflate": ("libdeflate-dev", "MIT", "https://github.com/ebiggers/libdeflate"),
             "jansson": ("libjansson-dev", "MIT", "https://github.com/akheron/jansson")}
SYSTEMS = {"": "builder-bullseye", "-musl": "builder-musl-bookworm"}  # by what the names of packages have behind them


def installed_version(package, system):
    """Of Debian's package in a system that builds, by dpkg's own list."""
    with open(f"{system}/var/lib/dpkg/status", encoding="utf-8") as status:
        for paragraph in status.read().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and not line.startswith(" "))
            if fields.get("Package") == package:
                return fields["Version"]
    raise SystemExit(f"sbom.py: {package} is not installed in {system}")


def built_in(directory):
    """Variants of a tarball in the directory, and the systems that they were built in."""
    top = os.environ.get("SOFTVERBS_RELEASES", "/var/tmp/softverbs-releases")
    for variant, system in SYSTEMS.items():
        if not variant or any(name.endswith(f"{variant}.tar.gz") for name in os.listdir(directory)):
            yield variant, f"{top}/{system}"


def package(name, version, license_, place):
    return {"SPDXID": f"SPDXRef-Package-{name}", "name": name, "versionInfo": version, "downloadLocation": place, "filesAnalyzed": False,
            "licenseConcluded": license_, "licenseDeclared": license_, "copyrightText": "NOASSERTION"}


def main():
    version, directory = sys.argv[1:]
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    packages = [package("softverbs", version, "BSD-2-Clause", "NOASSERTION")]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-Package-softverbs"}]
    for name, (debian, license_, place) in CONTAINED.items():
        for variant, system in built_in(directory):
            packages.append(package(name + variant, installed_version(debian, system), license_, place))
            relations.append({"spdxElementId": "SPDXRef-Package-softverbs", "relationshipType": "CONTAINS", "relatedSpdxElement": f"SPDXRef-Package-{name}{variant}"})
    files = []
    for number, name in enumerate(sorted(name for name in os.listdir(directory) if "softverbs" in name and not name.endswith(".spdx.json")), 1):
        with open(f"{directory}/{name}", "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        files.append({"SPDXID": f"SPDXRef-File-{number}", "fileName": f"./{name}", "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
                      "licenseConcluded": "BSD-2-Clause", "licenseInfoInFiles": ["NOASSERTION"], "copyrightText": "NOASSERTION"})
        relations.append({"spdxElementId": "SPDXRef-Package-softverbs", "relationshipType": "GENERATES", "relatedSpdxElement": f"SPDXRef-File-{number}"})
    digest = hashlib.sha256("".join(file["checksums"][0]["checksumValue"] for file in files).encode()).hexdigest()
    document = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"softverbs-{version}",
                "documentNamespace": f"https://softverbs.invalid/spdx/softverbs-{version}-{digest}",
                "creationInfo": {"created": created, "creators": ["Tool: softverbs-sbom"]}, "packages": packages, "files": files, "relationships": relations}
    with open(f"{directory}/softverbs-{version}.spdx.json", "w", encoding="utf-8") as out:
        json.dump(document, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
