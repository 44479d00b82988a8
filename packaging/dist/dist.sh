#!/bin/bash
# Builds the files of a release into dist/, from the last commit: dist.sh [source] [tarball] [wheel] [image] [aarch64] [musl] [deb] [rpm], by default all of them.
# All are built in systems that debootstrap makes. The tarball is built in one of Debian 11, so that it runs with glibc 2.31 and newer; wheel and container
# image have the same binaries; aarch64 are these three for that processor, by Debian's cross compiler; musl is a tarball for that C library; each release of
# Debian has its own .deb; the .rpm is built on Debian 12. Two runs of one commit give the same bytes. Ends with SBOM, SHA256SUMS and a check of all files.
# As root, on Debian.
set -eu
cd "$(dirname "$0")/../.."
kinds="source tarball wheel image aarch64 musl deb rpm"
asked=${*:-$kinds}
for kind in $asked; do
    case " $kinds " in
    *" $kind "*) ;;
    *) echo "dist.sh: there is no kind of file \"$kind\"; it knows $kinds." >&2; exit 2 ;;
    esac
done
# Only what these kinds want: rpm reads packages to check them, the emulator runs aarch64's programs in the system of its image.
packages_here=dist
case " $asked $(ls dist/*.rpm 2>/dev/null || true)" in *rpm*) packages_here="$packages_here +rpm" ;; esac
case " $asked " in *" aarch64 "*) packages_here="$packages_here +qemu-user-static" ;; esac
# shellcheck disable=SC2086
tools/build/setup.sh $packages_here
. tests/releases/chroots.sh
echo "Builds $asked, in systems of Debian that are fetched once and stay in $cache; the first time takes ten minutes and more."
exec 3>&1 # what a step is about, where its own output is kept away
builder=builder-bullseye musl_builder=builder-musl-bookworm here=$(uname -m) image_of=trixie
deb_releases="bullseye+deb11 bookworm+deb12 trixie+deb13 sid+sid" rpm_built_on=bookworm
arm64="gcc-aarch64-linux-gnu $(printf '%s:arm64 ' libc6-dev libibverbs-dev librdmacm-dev libdeflate-dev libjansson-dev systemtap-sdt-dev)"
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
[ -z "$(git status --porcelain)" ] || echo "dist.sh: the tree has changes that are not committed; they are left out." >&2
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git archive HEAD | tar x -C "$tree"
mkdir -p dist

quietly() { # quietly COMMAND...: its last lines when it fails
    "$@" >"$cache/dist.log" 2>&1 || { tail -n 20 "$cache/dist.log"; return 1; }
}

place_tree() {
    rm -rf "$cache/$1/root/softverbs"
    cp -a "$tree" "$cache/$1/root/softverbs"
}

# prepared SUITE NAME COMMAND: the system NAME, in whose tree COMMAND installed once what builds want.
prepared() {
    if [ ! -f "$cache/$2/root/prepared" ]; then
        echo "   fetches a system of $1, and installs in it what builds want" >&3
        fresh "$1" "$2" && place_tree "$2" && NETWORK=1 in_tree "$2" "apt-get $old -qq update && $3" && touch "$cache/$2/root/prepared" || return 1
    fi
    place_tree "$2"
}

prepare_builder() { # for the tarballs of glibc
    prepared bullseye "$builder" "tools/build/setup.sh build && dpkg --add-architecture arm64 && apt-get -qq update &&
        apt-get -qq install -y --no-install-recommends $arm64"
}

packages() { # packages SYSTEM KIND [VARIABLE]: what packages.sh makes there
    echo "   builds $2 in $1" >&3
    in_tree "$1" "env SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH ${3:-} tools/build/packages.sh $2"
}

# build_tarball [aarch64]
build_tarball() {
    quietly prepare_builder
    quietly packages "$builder" "tarball${1:+-$1}"
    cp "$cache/$builder/root/softverbs/dist/softverbs-$version-${1:-$here}.tar.gz" dist/
}

build_wheel() { # build_wheel [aarch64]
    local tarball=softverbs-$version-${1:-$here}.tar.gz compiler=cc
    [ -f "dist/$tarball" ] || build_tarball "$@"
    quietly prepare_builder
    [ "${1:-$here}" = "$here" ] || compiler=$1-linux-gnu-gcc
    in_tree "$builder" "mkdir -p dist" && cp "dist/$tarball" "$cache/$builder/root/softverbs/dist/"
    in_tree "$builder" "env SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH CC=$compiler packaging/dist/wheel.py dist/$tarball dist"
    cp "$cache/$builder"/root/softverbs/dist/*.whl dist/
}

# build_image [aarch64]: the system in it is that of packaging/Containerfile
build_image() {
    local tarball=softverbs-$version-${1:-$here}.tar.gz base=image-base${1:+-$1} EMULATED=
    [ -f "dist/$tarball" ] || build_tarball "$@"
    if [ ! -f "$cache/$base.prepared" ]; then
        echo "   fetches the system of the image" >&3
        [ "${1:-$here}" = "$here" ] || EMULATED=1
        quietly fresh "$image_of" "$base" ${1:+arm64}
        NETWORK=1 quietly enter "$base" sh -c "apt-get -qq update && apt-get -qq install -y --no-install-recommends ibverbs-utils perftest rdmacm-utils"
        touch "$cache/$base.prepared"
    fi
    packaging/dist/image.py "dist/$tarball" "$cache/$base" dist
}

build_aarch64() {
    build_tarball aarch64
    build_wheel aarch64
    build_image aarch64
}

build_musl() { # on Debian 12, of whose sources the libraries are; musl has one form for all releases
    quietly prepared bookworm "$musl_builder" "tools/build/setup.sh build && packaging/dist/musl.sh"
    quietly packages "$musl_builder" "tarball-$here-musl"
    cp "$cache/$musl_builder/root/softverbs/dist/softverbs-$version-$here-musl.tar.gz" dist/
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

# build_on SUITE KIND COMMAND [VARIABLE]: a package of KIND, in a system of SUITE in which COMMAND installs what it wants
build_on() {
    quietly prepared "$1" "builder-$2-$1" "$3"
    quietly packages "builder-$2-$1" "$2" "${4:-}"
    cp "$cache/builder-$2-$1"/root/softverbs/dist/*."$2" dist/
}

build_deb() {
    local each
    for each in $deb_releases; do
        build_on "${each%%+*}" deb "tools/build/setup.sh build packages" "DEB_RELEASE=+${each#*+}"
    done
}

build_rpm() {
    build_on "$rpm_built_on" rpm "tools/build/setup.sh build && apt-get -qq install -y --no-install-recommends rpm"
}

for kind in $asked; do
    echo "== $kind"
    "build_$kind"
done
packaging/dist/sbom.py "$version" dist
packaging/dist/check.py dist
(cd dist && sha256sum -- *softverbs*[!S] >SHA256SUMS && cat SHA256SUMS)
