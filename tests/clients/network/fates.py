"""The fates of the packets that a program sent, by queue pair, from its captures."""
import glob
import os
import re
import tempfile

from clients import Failure

RULES = "when packet, opcode WRITE*, chance 5%: drop; when packet, opcode WRITE*, chance 5%: duplicate; fault reorder=2%"
COMMAND = ["ib_write_bw", "-F", "-c", "UC", "-s", "64", "-n", "300", "-q", "2"]  # nothing is repeated, so nothing depends on time
ENHANCED, COMMENT, FLAGS, SENT = 6, 1, 2, 2


def _blocks(data):
    """Type and body of each block of a pcapng file."""
    at = 0
    while at + 12 <= len(data):
        length = int.from_bytes(data[at + 4:at + 8], "little")
        if length < 12:
            break
        yield int.from_bytes(data[at:at + 4], "little"), data[at + 8:at + length - 4]
        at += length


def _options(body):
    captured = int.from_bytes(body[12:16], "little")
    at, found = 20 + (captured + 3) // 4 * 4, {}
    while at + 4 <= len(body):
        code, length = int.from_bytes(body[at:at + 2], "little"), int.from_bytes(body[at + 2:at + 4], "little")
        if not code:
            break
        found[code] = body[at + 4:at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return found


def _sent(path):
    """The fates of the packets that the process of this capture sent: a list for each of its queue pairs, in the order of their first packets: a number may wrap around."""
    with open(path, "rb") as file:
        blocks = [_options(body) for kind, body in _blocks(file.read()) if kind == ENHANCED]
    queue_pairs = {}
    for options in blocks:
        comment = options.get(COMMENT, b"").decode()
        number = re.search(r"qp (0x[0-9a-f]+)", comment)
        if number and options.get(FLAGS, b"\0")[0] & 3 == SENT:
            fate = comment.partition("fault: ")[2].partition(" delayed")[0].strip()  # how long is a matter of time, and spaces fill the room of a comment
            queue_pairs.setdefault(int(number[1], 16), []).append(fate)
    return list(queue_pairs.values())


def fates(run, variables):
    """Runs COMMAND with these variables: what happened to the packets of the process that sent most."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        run(COMMAND, {**variables, "SOFTVERBS_CAPTURE": f"{directory}/%p.pcapng"})
        captures = [_sent(path) for path in glob.glob(f"{directory}/*")]
    return max(captures, key=lambda queue_pairs: sum(map(len, queue_pairs)))


def within_a_host(seed):
    """Variables with which the seed of the process decides."""
    return {"SOFTVERBS_SEED": str(seed), "SOFTVERBS_INJECT": RULES}


def on_a_network(seed):
    """The same, where SOFTVERBS_SEED is refused, as it would make keys known: the faults have their own seed."""
    return {"SOFTVERBS_INJECT": f"fault drop=5%,dup=5%,reorder=2%,seed={seed}"}


def are_those_of_the_seed(run, variables):
    """Two runs, and a third with another seed."""
    first, again, other = (fates(run, variables(seed)) for seed in (5, 5, 6))
    hit = sum(bool(fate) for queue_pair in first for fate in queue_pair)
    if len(first) < 2 or first != again or not 30 < hit < 150:
        raise Failure(f"{hit} packets hit; of each queue pair {[len(fates) for fates in first]} packets, then {[len(fates) for fates in again]}")
    if first == other:
        raise Failure("another seed hit the same packets")
    return f"{hit} of {sum(map(len, first))} packets of {len(first)} queue pairs, twice"
