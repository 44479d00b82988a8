#!/bin/bash
# Builds the files of a release into dist/, from the last commit: dist.sh [source] [tarball] [wheel] [image] [deb] [rpm], by default all of them.
# The tarball is built in a system of Debian 11, so that it runs with glibc 2.31 and newer; wheel and container image have the same binaries; the .deb and
# the .rpm are built on this system. Two runs of one commit give the same bytes. Ends with SBOM, SHA256SUMS and a check of all files.
# As root, on Debian.
set -eu
cd "$(dirname "$0")/../.."
. tests/releases/chroots.sh
built_on=bullseye system=builder-bullseye image_of=trixie
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
[ -z "$(git status --porcelain)" ] || echo "dist.sh: the tree has changes that are not committed; they are left out." >&2
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git archive HEAD | tar x -C "$tree"
mkdir -p dist

# The system with the compiler and the libraries that the README's command installs.
prepare_system() {
    [ -f "$cache/$system/root/prepared" ] && return
    fresh "$built_on" "$system"
    NETWORK=1 enter "$system" apt-get -qq update
    rm -rf "$cache/$system/root/softverbs"
    cp -a "$tree" "$cache/$system/root/softverbs"
    NETWORK=1 in_tree "$system" "tools/build/setup.sh build"
    touch "$cache/$system/root/prepared"
}

build_tarball() {
    prepare_system >"$cache/dist.log" 2>&1 || { tail -n 20 "$cache/dist.log"; return 1; }
    rm -rf "$cache/$system/root/softverbs"
    cp -a "$tree" "$cache/$system/root/softverbs"
    in_tree "$system" "env SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH tools/build/packages.sh tarball" >"$cache/dist.log" 2>&1 || { tail -n 20 "$cache/dist.log"; return 1; }
    cp "$cache/$system"/root/softverbs/dist/softverbs-"$version"-*.tar.gz dist/
}

build_wheel() {
    [ -f "dist/softverbs-$version-$(uname -m).tar.gz" ] || build_tarball
    packaging/dist/wheel.py "dist/softverbs-$version-$(uname -m).tar.gz" dist
}

# The sources as the recipes take them, from the address $SOFTVERBS_RELEASE_URL, and the recipes for them.
build_source() {
    local name=softverbs-$version work
    work=$(mktemp -d)
    git archive --prefix="$name/" HEAD | xz -T1 >"dist/$name.tar.xz"
    packaging/dist/recipes.py "$version" "dist/$name.tar.xz" "${SOFTVERBS_RELEASE_URL:-https://softverbs.invalid/v$version}/$name.tar.xz" "$work/$name-recipes"
    tar c -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go-w "$name-recipes" | xz -T1 >"dist/$name-recipes.tar.xz"
    rm -rf "$work"
}

# The system in the image is that of packaging/Containerfile.
build_image() {
    local base=image-base
    [ -f "dist/softverbs-$version-$(uname -m).tar.gz" ] || build_tarball
    if [ ! -f "$cache/$base.prepared" ]; then
        fresh "$image_of" "$base"
        NETWORK=1 enter "$base" sh -c "apt-get -qq update && apt-get -qq install -y --no-install-recommends ibverbs-utils perftest rdmacm-utils" >"$cache/dist.log" 2>&1 ||
            { tail -n 20 "$cache/dist.log"; return 1; }
        touch "$cache/$base.prepared"
    fi
    packaging/dist/image.py "dist/softverbs-$version-$(uname -m).tar.gz" "$cache/$base" dist
}

build_here() { # build_here KIND
    tools/build/setup.sh build packages
    [ "$1" != rpm ] || command -v rpmbuild >/dev/null || apt-get -qq install -y rpm >/dev/null
    (cd "$tree" && tools/build/packages.sh "$1")
    cp "$tree"/dist/* dist/
}

for each in "${@:-source tarball wheel image deb rpm}"; do
    for kind in $each; do
        echo "== $kind"
        case $kind in
        source | tarball | wheel | image) "build_$kind" ;;
        deb | rpm) build_here "$kind" ;;
        *) echo "dist.sh: there is no kind of file \"$kind\"; it knows source, tarball, wheel, image, deb and rpm." >&2; exit 2 ;;
        esac
    done
done
packaging/dist/sbom.py "$version" dist
packaging/dist/check.py dist
(cd dist && sha256sum -- *softverbs*[!S] >SHA256SUMS && cat SHA256SUMS)
