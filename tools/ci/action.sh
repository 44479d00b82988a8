#!/bin/bash
# The steps of action.yml: action.sh key, action.sh install. `key` says under which name the installed files are cached, and where they are; `install`
# takes them from there, from a tarball, from a release, or builds them, asks the doctor, and hands the environment to later steps.
set -euo pipefail
target=$RUNNER_TEMP/softverbs
version=${SOFTVERBS_INPUT_VERSION:-${SOFTVERBS_ACTION_REF:-}}
tarball=${SOFTVERBS_INPUT_TARBALL:-}

# A branch changes, so a build of it is cached by a checksum of its sources.
sources() {
    (cd "$GITHUB_ACTION_PATH" && find meson.build lib src tools -type f -print0 | sort -z | xargs -0 cat | cksum | tr ' ' -)
}

# A build of this system runs on another system only if its C library is not older, so the key has the system, too.
key() {
    local system
    case $version in v[0-9]*) ;; *) version=$(sources) ;; esac
    system=$(. /etc/os-release && echo "$ID${VERSION_ID:-}")
    {
        echo "key=softverbs-$version-$(printf %s "$tarball" | cksum | tr ' ' -)-$system-$(uname -m)"
        echo "path=$target"
    } >>"$GITHUB_OUTPUT"
}

unpack() { # unpack: a tarball from standard input
    mkdir -p "$target"
    tar xz -C "$target" --strip-components=1
}

# The tarball of the release, if there is one for this processor.
take_release() {
    case $version in v[0-9]*) ;; *) return 1 ;; esac
    [ -n "${SOFTVERBS_ACTION_REPOSITORY:-}" ] || return 1
    curl -fsSL -o "$RUNNER_TEMP/softverbs.tar.gz" \
        "${GITHUB_SERVER_URL:-https://github.com}/$SOFTVERBS_ACTION_REPOSITORY/releases/download/$version/softverbs-${version#v}-$(uname -m).tar.gz" &&
        unpack <"$RUNNER_TEMP/softverbs.tar.gz"
}

install() {
    local source
    if [ -x "$target/bin/softverbs" ]; then
        source=cache
    elif [ -n "$tarball" ]; then
        source=tarball
        case $tarball in
        *://*) curl -fsSL "$tarball" | unpack ;;
        *) unpack <"$tarball" ;;
        esac
    elif take_release; then
        source=release
    else
        source=build
        make -C "$GITHUB_ACTION_PATH" install PREFIX="$target"
    fi
    echo "$target/bin" >>"$GITHUB_PATH"
    {
        echo "version=$("$target/bin/softverbs" version | sed -n 1p)"
        echo "path=$target"
        echo "source=$source"
    } >>"${GITHUB_OUTPUT:-/dev/null}"
    "$target/bin/softverbs" doctor
    # shellcheck disable=SC2086 # the options are words
    [ "${SOFTVERBS_INPUT_GLOBAL:-true}" != true ] || "$target/bin/softverbs" env --github ${SOFTVERBS_INPUT_OPTIONS:-}
}

case ${1:-} in
key | install) "$1" ;;
*) echo "action.sh: key or install" >&2; exit 2 ;;
esac
