#!/bin/bash
# Builds what people install, into dist/: packages.sh [deb] [tarball] [rpm], by default the first two; tarball-TARGET takes the compiler of packaging/cross/TARGET.ini.
# The tarball runs from any directory and needs only the C library: libdeflate and jansson are linked statically. Built on an
# old distribution it runs on newer ones too. $DEB_RELEASE, such as +deb12, follows the version of the .deb: each release of Debian has a separate .deb.
set -eu
cd "$(dirname "$0")/../.."
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p dist

copy_of_tree() { # what belongs to the tree, without builds
    mkdir -p "$1"
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files -co --exclude-standard | tar c --verbatim-files-from -T - | tar x -C "$1"
    else
        tar c --exclude=./build --exclude=./build-\* --exclude=./dist . | tar x -C "$1"
    fi
}

build_deb() {
    command -v dpkg-buildpackage >/dev/null && command -v dh >/dev/null || { echo "packages.sh: a .deb needs the package debhelper." >&2; return 1; }
    copy_of_tree "$work/deb/softverbs-$version"
    sed -i "1s/(\(.*\))/(\1${DEB_RELEASE:-})/" "$work/deb/softverbs-$version/debian/changelog"
    (cd "$work/deb/softverbs-$version" && dpkg-buildpackage -us -uc -b -d >"$work/deb.log" 2>&1) || { tail -30 "$work/deb.log"; return 1; }
    cp "$work"/deb/*softverbs*_"$version${DEB_RELEASE:-}"_*.deb dist/
}

build_tarball() { # build_tarball [TARGET]
    local name=softverbs-$version-${1:-$(uname -m)}
    copy_of_tree "$work/tar"
    (cd "$work/tar" && meson setup build --prefix=/ -Dtests=false -Dportable=true --buildtype=release --strip -Db_lto=true ${1:+--cross-file "packaging/cross/$1.ini"} && ninja -C build &&
        DESTDIR="$work/$name" meson install --no-rebuild -C build) >"$work/tar.log" 2>&1 || { tail -30 "$work/tar.log"; return 1; }
    # The same bytes for the same sources: names in order, one time for all files, and no name of the packer.
    tar c -C "$work" --sort=name --mtime="@${SOURCE_DATE_EPOCH:-$(date +%s)}" --owner=0 --group=0 --numeric-owner --mode=go-w "$name" |
        gzip -n >"dist/$name.tar.gz"
}

# Builds the .rpm also on a distribution without packages of rpm: setup.sh installs all that it needs.
build_rpm() {
    command -v rpmbuild >/dev/null || { echo "packages.sh: an .rpm needs rpmbuild (package rpm of Debian, rpm-build of Fedora)." >&2; return 1; }
    local top=$work/rpm
    mkdir -p "$top/SOURCES"
    copy_of_tree "$top/softverbs-$version"
    tar czf "$top/SOURCES/softverbs-$version.tar.gz" -C "$top" "softverbs-$version"
    sed "s/@VERSION@/$version/" packaging/softverbs.spec >"$top/softverbs.spec"
    # The same bytes for the same sources: one time, and not the name of this machine.
    rpmbuild -bb --nodeps --define "_topdir $top" --define "debug_package %{nil}" --define "optflags -O2" --define "_build_id_links none" --define "_buildhost softverbs" \
        --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" "$top/softverbs.spec" >"$work/rpm.log" 2>&1 || { tail -30 "$work/rpm.log"; return 1; }
    if rpm -qp --provides "$top"/RPMS/*/*.rpm | grep -q '^libibverbs'; then
        echo "packages.sh: the .rpm offers our libibverbs.so.1 to everybody." >&2
        return 1
    fi
    cp "$top"/RPMS/*/*.rpm dist/
}

for kind in "${@:-deb tarball}"; do
    for each in $kind; do
        case $each in
        deb | tarball | rpm) "build_$each" ;;
        tarball-*) build_tarball "${each#tarball-}" ;;
        *) echo "packages.sh: there is no kind of package \"$each\"; it knows deb, tarball, tarball-TARGET and rpm." >&2; exit 2 ;;
        esac
    done
done
ls -l dist
