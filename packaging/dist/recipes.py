#!/usr/bin/env python3
"""Writes the recipes for other distributions, for one source archive: recipes.py VERSION ARCHIVE URL DIRECTORY

packaging/recipes has them with @VERSION@, @URL@ and @SHA256@; DIRECTORY gets a folder of each, as a maintainer takes it."""
import hashlib
import os
import re
import sys

RECIPES = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../recipes"))


def main():
    version, archive, url, directory = sys.argv[1:]
    with open(archive, "rb") as file:
        words = {"VERSION": version, "URL": url, "SHA256": hashlib.sha256(file.read()).hexdigest()}
    for folder, _, names in os.walk(RECIPES):
        for name in names:
            with open(f"{folder}/{name}", encoding="utf-8") as file:
                text = re.sub(r"@(VERSION|URL|SHA256)@", lambda found: words[found[1]], file.read())
            place = f"{directory}/{os.path.relpath(folder, RECIPES)}"
            os.makedirs(place, exist_ok=True)
            with open(f"{place}/{name}", "w", encoding="utf-8") as file:
                file.write(text)


if __name__ == "__main__":
    main()
