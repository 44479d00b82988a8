#!/bin/sh
# Put in PATH as `ssh`, for suites that start both ends of a test by ssh: runs the command here, or, by its address, on a host of a lab. (A lab has an ssh of its own, which knows
# names. With a name fabtests' client takes the host's IPv6 address, at which the server does not listen.)
while :; do
    case ${1-} in
    -o) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
host=$1
shift
case $host in
10.77.0.*) exec softverbs on "h${host##*.}" -- sh -c "$*" </dev/null ;;
esac
exec sh -c "$*" </dev/null
