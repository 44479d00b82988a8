#!/bin/bash
# Builds what people install, into dist/: packages.sh [deb] [tarball], by default both.
# The tarball runs from any directory, with what the C library has: libdeflate and jansson are linked statically. Built on an
# old distribution it runs on newer ones too.
set -eu
cd "$(dirname "$0")/../.."
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p dist

copy_of_tree() { # what belongs to the tree, without builds
    mkdir -p "$1"
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files -co --exclude-standard | tar c -T - | tar x -C "$1"
    else
        tar c --exclude=./build --exclude=./build-\* --exclude=./dist . | tar x -C "$1"
    fi
}

build_deb() {
    command -v dpkg-buildpackage >/dev/null && command -v dh >/dev/null || { echo "packages.sh: a .deb needs the package debhelper." >&2; return 1; }
    copy_of_tree "$work/deb/softverbs-$version"
    (cd "$work/deb/softverbs-$version" && dpkg-buildpackage -us -uc -b -d >"$work/deb.log" 2>&1) || { tail -30 "$work/deb.log"; return 1; }
    cp "$work"/deb/softverbs*_"$version"_*.deb dist/
}

build_tarball() {
    local name
    name=softverbs-$version-$(uname -m)
    copy_of_tree "$work/tar"
    (cd "$work/tar" && meson setup build --prefix=/ -Dtests=false -Dportable=true --buildtype=release --strip && ninja -C build &&
        DESTDIR="$work/$name" meson install --no-rebuild -C build) >"$work/tar.log" 2>&1 || { tail -30 "$work/tar.log"; return 1; }
    tar czf "dist/$name.tar.gz" -C "$work" --owner=0 --group=0 "$name"
}

for kind in "${@:-deb tarball}"; do
    for each in $kind; do
        case $each in
        deb | tarball) "build_$each" ;;
        *) echo "packages.sh: there is no kind of package \"$each\"; it knows deb and tarball." >&2; exit 2 ;;
        esac
    done
done
ls -l dist
