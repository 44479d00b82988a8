#!/usr/bin/env python3
"""Multicast between hosts: three network namespaces on a bridge that learns the members of each group from IGMP and MLD, with two
processes on each."""
import contextlib
import ipaddress
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# pylint: disable=wrong-import-position
from clients import BUILD, Failure, Suite
from network.wire import GID_INDEX, INSIDE, enter_namespaces, ip
from patience import until

HOSTS = ("a", "b", "c")
GROUPS = {4: ipaddress.ip_address("239.7.1.2"), 6: ipaddress.ip_address("ff0e::7:12")}
OTHERS = {4: ipaddress.ip_address("239.7.1.3"), 6: ipaddress.ip_address("ff0e::7:13")}
DATAGRAMS = 50


def gid(group):
    return f"::ffff:{group}" if group.version == 4 else str(group)


def add_host(number, name):
    ip("netns", "add", name)
    ip("link", "add", f"port-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
    ip("link", "set", f"port-{name}", "master", "bridge", "up")
    ip("-n", name, "link", "set", "lo", "up")
    ip("-n", name, "address", "add", f"10.92.0.{number}/24", "dev", "eth0")
    ip("-n", name, "address", "add", f"fd92::{number}/64", "dev", "eth0", "nodad")
    ip("-n", name, "link", "set", "eth0", "up")


def make_hosts():
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)  # where "ip netns" keeps its names
    ip("link", "set", "lo", "up")
    ip("link", "add", "bridge", "type", "bridge", "mcast_snooping", "1", "mcast_querier", "1", "mcast_igmp_version", "3",
       "mcast_mld_version", "2")
    ip("link", "set", "bridge", "up")
    for number, name in enumerate(HOSTS, 1):
        add_host(number, name)


class Member:
    """A process on a host that runs the commands of this test."""

    def __init__(self, suite, host, version):
        directory = f"{suite.directory}/{host}"
        os.makedirs(directory, mode=0o700, exist_ok=True)
        command = ["ip", "netns", "exec", host, f"{suite.root}/softverbs", "run", "--net", "eth0", "--",
                   f"{BUILD}/tests/clients/multicast_member"]
        self.host, self.environment = host, suite.environment({"SOFTVERBS_DIR": directory, "ENDPOINT_GID": GID_INDEX[version]})
        self.process = subprocess.Popen(command, env=self.environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failure(f"a process on host {self.host} ended with status {self.process.wait()}")
        return line.strip()

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def ask(self, *words):
        self.tell(*words)
        return self.answer()

    def attach(self, group):
        return int(self.ask("attach", gid(group)))

    def detach(self, group):
        return int(self.ask("detach", gid(group)))

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(10)

    def kill(self):
        self.process.kill()
        self.close()


def came(members):
    """The messages that each of them was sent since the last call: group to number."""
    for member in members:
        member.tell("count")
    counts = [dict(part.rsplit("=", 1) for part in member.answer().split()) for member in members]
    return [{group: int(count) for group, count in each.items()} for each in counts]


def is_member(host, group):
    """Returns true if the host's kernel reports to the network that a process there is in the group."""
    with subprocess.Popen(["ip", "netns", "exec", host, "cat", "/proc/net/igmp" if group.version == 4 else "/proc/net/igmp6"],
                          stdout=subprocess.PIPE, text=True) as tables:
        words = tables.stdout.read().lower().split()
    return (group.packed[::-1] if group.version == 4 else group.packed).hex() in words


def learned(group):
    """The hosts at the ports of the bridge that lead to members."""
    shown = json.loads(subprocess.run(["bridge", "-j", "mdb", "show"], capture_output=True, check=True).stdout or "[]")
    return {entry["port"].removeprefix("port-") for table in shown for entry in table.get("mdb", []) if entry["grp"] == str(group)}


def expect_hosts(group, hosts):
    """These hosts are members of the group, for their kernels at once, and soon for the bridge."""
    members = {host for host in HOSTS if is_member(host, group)}
    if members != set(hosts):
        raise Failure(f"members of {group} are on {sorted(members)}, not {sorted(hosts)}")
    deadline = until(5)
    while not learned(group) >= members:
        if time.monotonic() > deadline:
            raise Failure(f"the bridge has heard of {group} from {sorted(learned(group))}, not {sorted(hosts)}")
        time.sleep(0.02)


def expect_datagrams(sender, group, members, others):
    """All that the sender sends reaches each of the members once, and nothing reaches the others."""
    if sender.ask("send", gid(group), DATAGRAMS) != "0":
        raise Failure("not all datagrams were sent")
    counts = came([*members, *others])
    expected = [{gid(group): DATAGRAMS}] * len(members) + [{}] * len(others)
    if counts != expected:
        raise Failure(f"of {DATAGRAMS} datagrams came {counts} to {len(members)} members and {len(others)} others")


@contextlib.contextmanager
def crowd(suite, version):
    """Two processes on each host."""
    with contextlib.ExitStack() as stack:
        members = []
        for host in HOSTS:
            for _ in range(2):
                members.append(Member(suite, host, version))
                stack.callback(members[-1].process.kill)
        yield members
        for member in members:
            if not member.process.stdin.closed and member.close():
                raise Failure(f"a process on host {member.host} did not end well")


def reaches_all_that_joined(suite, version):
    group, other = GROUPS[version], OTHERS[version]
    with crowd(suite, version) as (a1, a2, b1, b2, c1, c2):
        for member in (a2, b1, b2):
            if member.attach(group):
                raise Failure("ibv_attach_mcast fails")
        c1.attach(other)
        expect_hosts(group, ["a", "b"])
        expect_hosts(other, ["c"])
        expect_datagrams(a1, group, [a2, b1, b2], [a1, c1, c2])
        expect_datagrams(c2, group, [a2, b1, b2], [a1, c1, c2])
        expect_datagrams(c2, other, [c1], [a1, a2, b1, b2, c2])
        expect_datagrams(a1, other, [c1], [a1, a2, b1, b2, c2])


def ends_with_the_last(suite, version):
    """A host is a member for as long as one of its processes is, however that ends."""
    group = GROUPS[version]
    with crowd(suite, version) as (a1, a2, b1, b2, c1, c2):
        for member in (a1, a2, b1, b2, c1):
            member.attach(group)
        expect_hosts(group, ["a", "b", "c"])
        b1.detach(group)
        expect_datagrams(c2, group, [a1, a2, b2, c1], [b1])
        expect_hosts(group, ["a", "b", "c"])
        b2.detach(group)
        if b2.detach(group) == 0:
            raise Failure("it can be detached twice")
        expect_hosts(group, ["a", "c"])
        expect_datagrams(c2, group, [a1, a2, c1], [b1, b2])
        a1.kill()
        expect_hosts(group, ["a", "c"])
        expect_datagrams(c2, group, [a2, c1], [b1, b2])
        a2.kill()
        c1.close()
        expect_hosts(group, [])
        b2.attach(group)
        expect_hosts(group, ["b"])
        expect_datagrams(c2, group, [b2], [b1])


def takes_many_groups(suite, version):
    """More than a socket may be in (sysctl net.ipv4.igmp_max_memberships: 20)."""
    first = GROUPS[version] + 100
    groups = [first + number for number in range(60)]
    with crowd(suite, version) as (a1, a2, b1, b2, c1, c2):
        for group in groups:
            if b1.attach(group):
                raise Failure(f"{group} can't be attached")
        for group in groups:
            expect_hosts(group, ["b"])
            a1.ask("send", gid(group), 1)
        if came([b1, b2]) != [{gid(group): 1 for group in groups}, {}]:
            raise Failure("not all groups were heard")
        for group in groups:
            b1.detach(group)
            expect_hosts(group, [])


def is_not_bothered(suite, version):
    """A process that has joined nothing, on a host where another has, is not even woken by a message to the group."""
    group = GROUPS[version]
    with crowd(suite, version) as (a1, a2, b1, b2, c1, c2):
        b1.attach(group)
        b2.attach(OTHERS[version])
        expect_hosts(group, ["b"])
        expect_datagrams(a1, group, [b1], [a2, b2, c1, c2])
        shown = subprocess.run([f"{suite.root}/softverbs", "stat", "--once", "--json"], env=b1.environment, capture_output=True,
                               check=True, text=True)
        dropped = [process["strays"]["dropped"] for process in json.loads(shown.stdout)]
        if dropped != [{}, {}]:
            raise Failure(f"dropped, by reason: {dropped}")


def main():
    if not os.environ.get(INSIDE):
        enter_namespaces()
    suite = Suite()
    try:
        make_hosts()
    except subprocess.CalledProcessError as error:
        print(f"1..0 # SKIP this machine has no bridges: {error}")
        return 0
    for version in GID_INDEX:
        for name, test in (("a group's datagrams reach all that joined, and nobody else", reaches_all_that_joined),
                           ("a host is in a group for as long as one of its processes is", ends_with_the_last),
                           ("a process is in many groups", takes_many_groups),
                           ("who has not joined is not bothered", is_not_bothered)):
            suite.add(f"{name} (IPv{version})", lambda test=test, version=version: test(suite, version))
    return suite.run()


if __name__ == "__main__":
    sys.exit(main())
