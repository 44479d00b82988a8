#!/bin/sh
# Installs what make has built, or removes it: install.sh install|uninstall. install takes PREFIX (/usr/local), LIBDIR (lib,
# below PREFIX) and DESTDIR, as make does; uninstall removes what build/installed.txt lists, whatever these are.
set -eu
cd "$(dirname "$0")/../.."
prefix=${PREFIX:-/usr/local} libdir=${LIBDIR:-lib} notes=build/meson-logs/install-log.txt log=build/installed.txt
case $1 in
install)
    for file in "$notes" "$log"; do
        if [ -e "$file" ] && [ ! -w "$file" ]; then
            echo "install.sh: $file is of another user, who installed from here before; remove it, or install as that user." >&2
            exit 1
        fi
    done
    tools/build/build.sh build -Dtests=false
    meson introspect --buildoptions build | python3 -c '
import json, sys
now = {option["name"]: option["value"] for option in json.load(sys.stdin)}
sys.exit((now["prefix"], now["libdir"]) != tuple(sys.argv[1:]))' "$prefix" "$libdir" ||
        meson configure build -Dprefix="$prefix" -Dlibdir="$libdir"
    tools/build/build.sh build -Dtests=false # what the new prefix changes
    meson install --no-rebuild -C build >/dev/null
    cp "$notes" "$log" # meson overwrites its notes when a package is made later
    echo "Installed softverbs in ${DESTDIR:-}$prefix"
    ;;
uninstall) # what meson has noted: files, and the directories that it made, unless others use them
    [ -f "$log" ] || { echo "install.sh: build/ has no record of an installation." >&2; exit 1; }
    grep -v '^#' "$log" | while IFS= read -r file; do
        if [ -d "$file" ] && [ ! -L "$file" ]; then
            rmdir "$file" 2>/dev/null || true
        else
            rm -f "$file"
        fi
    done
    echo "Removed what was installed"
    ;;
*) echo "install.sh: install or uninstall" >&2; exit 2 ;;
esac
