#!/bin/sh
# Put in PATH as `ssh`, for suites that start both ends of a test by ssh: runs the command here, or on the host of a lab that has the address. (The ssh of a lab knows names. By a
# name fabtests' client takes the IPv6 address of the host, at which the server does not listen.)
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
