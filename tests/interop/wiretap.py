"""Captures on the bridge and has two judges look at every packet: `softverbs decode` and tshark."""
import os
import subprocess
import sys

from guest import GUEST_MAC, NAMESPACE, TAP

from clients import BUILD, Failure, need

SNIFF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../clients/network/sniff.py")
# rxe leaves the checksum of UDP out over IPv6, which the annex allows (A17.9.1) and tshark does not. We send it.
RXE_WITHOUT_CHECKSUM = (GUEST_MAC, "Illegal checksum value (0)")
WARNING = 0x600000  # tshark's severity; below it are notes, such as that the ping-pongs ask for a hop limit of 1
ROCE = "udp.dstport == 4791 and not icmp and not icmpv6"  # those quote packets that were not delivered
# Guesses at what a program's data might be. They take a single byte for a protocol that then is cut short.
GUESSES = ("mellanox_eoib", "eth_over_ib", "rpcrdma_infiniband", "sdp_infiniband", "smb_direct_infiniband", "smcr_infiniband",
           "iser_infiniband", "lnet_ib", "fc_infiniband", "nvme_rdma")


class Wiretap:
    """Records what passes between the bridge and the guest while it is entered. There every packet looks as on a wire: the
    kernel has cut ours up."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.sniffer = subprocess.Popen(["ip", "netns", "exec", NAMESPACE, sys.executable, SNIFF, TAP, self.path],
                                        stdout=subprocess.PIPE)
        self.sniffer.stdout.readline()
        return self

    def __exit__(self, *_):
        self.sniffer.terminate()
        self.sniffer.wait()
        self.sniffer.stdout.close()


def decoded(path):
    """How many packets, each with the right ICRC and the same when encoded again."""
    shown = subprocess.run([f"{BUILD}/softverbs", "decode", path], capture_output=True, text=True, check=False)
    lines = shown.stdout.splitlines()
    if shown.returncode:
        wrong = [line for line in lines if "#" in line][:5]
        raise Failure("softverbs decode complains:\n" + "\n".join(wrong or lines[-1:]) + shown.stderr)
    return sum(" > " in line for line in lines)


def dissected(path):
    """The number of packets that tshark sees; no packet is malformed, and no packet has a warning."""
    command = [need("tshark"), "-r", path, "-Y", ROCE, "-T", "fields"]
    for guess in GUESSES:
        command += ["--disable-heuristic", guess]
    for field in ("frame.number", "infiniband.bth.opcode", "_ws.malformed", "_ws.expert.severity", "_ws.expert.message", "eth.src"):
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"tshark: {done.stderr}")
    packets = [line.split("\t") for line in done.stdout.splitlines()]
    for number, opcode, malformed, severity, message, source in packets:
        bad = any(int(value) >= WARNING for value in severity.split(",") if value)
        if not opcode or malformed or (bad and (source, message) != RXE_WITHOUT_CHECKSUM):
            raise Failure(f"tshark, frame {number}: opcode {opcode!r}, malformed {malformed!r}, {message}")
    return len(packets)


def judged(path):
    """How many packets, when both judges are content and have seen as many."""
    ours, theirs = decoded(path), dissected(path)
    if ours != theirs or not ours:
        raise Failure(f"softverbs decode sees {ours} packets, tshark {theirs}")
    return ours
