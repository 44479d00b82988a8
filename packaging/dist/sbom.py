#!/usr/bin/env python3
"""Writes what a release consists of, as SPDX 2.3 in JSON: sbom.py VERSION DIRECTORY

It lists the files of the directory with their checksums, and the two libraries that the tarball and the wheel contain; all else that they need is the C
library. The versions of the libraries are those of the system that the tarball was built on (dist.sh)."""
import hashlib
import json
import os
import sys
import time

CONTAINED = {"libdeflate": ("libdeflate-dev", "MIT", "https://github.com/ebiggers/libdeflate"),
             "jansson": ("libjansson-dev", "MIT", "https://github.com/akheron/jansson")}
SYSTEM = os.path.join(os.environ.get("SOFTVERBS_RELEASES", "/var/tmp/softverbs-releases"), "builder-bullseye")


def installed_version(package):
    """Of Debian's package in the system that builds, by dpkg's own list."""
    with open(f"{SYSTEM}/var/lib/dpkg/status", encoding="utf-8") as status:
        for paragraph in status.read().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and not line.startswith(" "))
            if fields.get("Package") == package:
                return fields["Version"]
    raise SystemExit(f"sbom.py: {package} is not installed in {SYSTEM}")


def package(name, version, license_, place):
    return {"SPDXID": f"SPDXRef-Package-{name}", "name": name, "versionInfo": version, "downloadLocation": place, "filesAnalyzed": False,
            "licenseConcluded": license_, "licenseDeclared": license_, "copyrightText": "NOASSERTION"}


def main():
    version, directory = sys.argv[1:]
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    packages = [package("softverbs", version, "BSD-2-Clause", "NOASSERTION")]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-Package-softverbs"}]
    for name, (debian, license_, place) in CONTAINED.items():
        packages.append(package(name, installed_version(debian), license_, place))
        relations.append({"spdxElementId": "SPDXRef-Package-softverbs", "relationshipType": "CONTAINS", "relatedSpdxElement": f"SPDXRef-Package-{name}"})
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
