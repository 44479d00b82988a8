#!/usr/bin/env python3
"""Writes docs/evidence/lab.md: the programs that run on the hosts of a lab, the shares of four streams on a busy core, the cost of many hosts.

By hand (`make lab`), after a build; the programs that are not installed are named as such."""
import datetime
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.abspath(f"{HERE}/../../..")
sys.path.append(f"{TOP}/tests/clients")
from wrapped import write_page  # pylint: disable=wrong-import-position

BUILD = os.path.abspath(os.environ.get("SOFTVERBS_BUILD", f"{TOP}/build"))
HELLO = """#include <mpi.h>
#include <stdio.h>
int main(int count, char **words)
{
    int rank, sum = 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum == 6)
        puts("fine");
    MPI_Finalize();
}
"""
PAIRS = (("ibv_rc_pingpong -g 1 -c", "ibv_rc_pingpong -g 1 -c h2"), ("ibv_ud_pingpong -g 1", "ibv_ud_pingpong -g 1 h2"),
         ("ib_write_bw -x 1 -n 500", "ib_write_bw -x 1 -n 500 h2"), ("ib_read_lat -x 1 -n 500", "ib_read_lat -x 1 -n 500 h2"),
         ("ib_send_bw -c UD -x 1 -n 500", "ib_send_bw -c UD -x 1 -n 500 h2"), ("rping -s -C 5 -a 10.77.0.2", "rping -c -C 5 -a 10.77.0.2"),
         ("ucx_perftest", "env UCX_TLS=rc_verbs,ud_verbs ucx_perftest h2 -t tag_bw -s 100000 -n 200"),
         ("fi_pingpong -p verbs -e msg", "fi_pingpong -p verbs -e msg h2"))
CROWDED = """leaf h1 h2 h3 h4
leaf h5 h6 h7 h8
core rate=100Mbit,ecn=32K
"""

VERBS = "rc_v,ud_v,self"  # UCX falls back to TCP without a word where these are missing


def lab(hosts, script, *options, seconds=180):
    """Status and what it printed."""
    done = subprocess.run([f"{BUILD}/softverbs", "lab", "--hosts", str(hosts), *options, "--", "sh", "-c", script], capture_output=True, text=True,
                          check=False, timeout=seconds, env={name: value for name, value in os.environ.items() if not name.startswith("SOFTVERBS_")})
    return done.returncode, done.stdout + done.stderr


def pairs():
    for server, client in PAIRS:
        if not shutil.which(server.split()[0]):
            yield client, "not installed"
            continue
        status, _ = lab(2, f"softverbs on h2 -- {server} >/dev/null 2>&1 & server=$!; for i in 1 2 3 4 5 6 7 8 9; do {client} && break; sleep 0.5; "
                           "done; status=$?; [ $status = 0 ] && wait $server")
        yield client, "yes" if status == 0 else f"no, status {status}"


def multicast():
    member = "mckey -m 239.1.2.3 -b 10.77.0.{} -C 5"
    receivers = "; ".join(f"(softverbs on h{i} -- timeout 30 {member.format(i)} | grep 'return status 0') &" for i in (2, 3)).replace("&;", "&")
    _, said = lab(3, f"{receivers} sleep 3; {member.format(1)} -s | grep 'return status 0'; wait")
    return "yes" if said.count("return status 0") == 3 else "no"


def message_passing():
    for name, compiler, command in (("Open MPI by default, 4 hosts", "mpicc.openmpi", "mpirun.openmpi -np 4 --host h1,h2,h3,h4"),
                                    ("Open MPI with pml ucx, 4 hosts", "mpicc.openmpi", "mpirun.openmpi -np 4 --host h1,h2,h3,h4 --mca pml ucx"),
                                    ("Open MPI with pml ucx over verbs alone, 4 hosts", "mpicc.openmpi",
                                     f"mpirun.openmpi -np 4 --host h1,h2,h3,h4 --mca pml ucx -x UCX_TLS={VERBS}"),
                                    ("MPICH, 4 hosts", "mpicc.mpich", "mpiexec.hydra -n 4 -hosts h1,h2,h3,h4"),
                                    ("MPICH over verbs alone, 4 hosts", "mpicc.mpich", f"mpiexec.hydra -n 4 -hosts h1,h2,h3,h4 -genv UCX_TLS {VERBS}")):
        if not shutil.which(compiler):
            yield name, "not installed"
            continue
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/hello.c", "w", encoding="utf-8") as file:
                file.write(HELLO)
            subprocess.run([compiler, f"{folder}/hello.c", "-o", f"{folder}/hello"], check=True)
            _, said = lab(4, f"{command} {folder}/hello", "--capture", f"{folder}/packets")
            decoded = subprocess.run([f"{BUILD}/softverbs", "decode", f"{folder}/packets"], capture_output=True, text=True, check=False).stdout
        packets = len(re.findall(r"^.*\b(?:RC|UD|UC) ", decoded, re.M))
        yield name, "no" if said.count("fine") != 4 else "yes" if packets else "yes, but by another network: no packet of a device"


def pdsh():
    if not shutil.which("pdsh"):
        return "not installed"
    _, said = lab(4, "pdsh -w 'h[1-4]' hostname")
    return "yes" if sorted(said.split("\n")[:4]) == [f"h{i}: h{i}" for i in range(1, 5)] else "no"


def slurm():
    """Runs on two nodes, and with two ranks on one; the programs of Debian, started as root on hosts of a lab."""
    rows = ("srun -N 2 -n 2 softverbs run --net eth0 -- ibv_rc_pingpong", "two nodes"), ("srun -N 1 -n 2 softverbs run -- ibv_rc_pingpong", "one node")
    present = all(map(shutil.which, ("slurmctld", "slurmd", "srun", "munged")))
    with tempfile.TemporaryDirectory(prefix="softverbs-slurm-") as folder:
        said = lab(3, f"{HERE}/lab_slurm.sh {folder}")[1] if present and os.geteuid() == 0 else ""
    for name, line in rows:
        yield name, "not as this user" if os.geteuid() else "not installed" if not present else "yes" if f"{line}: yes" in said else "no"


def parsers():
    """The verdict of docker-compose and of the models of Kubernetes on examples/cluster, by tests/tool/lab/cluster_test.py."""
    said = subprocess.run([f"{HERE}/cluster_test.py"], capture_output=True, text=True, check=False, timeout=600, env={**os.environ, "SOFTVERBS_BUILD": BUILD}).stdout
    for name, case in (("docker-compose config, of compose.yaml", "compose itself takes the file"),
                       ("models of python3-kubernetes, of pod.yaml", "the pods fields are those of kubernetes")):
        line = re.search(f"^(ok|not ok) \\d+ - {case}(.*)", said, re.MULTILINE)
        yield name, "no" if not line or line[1] != "ok" else "not installed" if "SKIP" in line[2].upper() else "yes"


def shares():
    """MiB in a second of four streams of one leaf to the other, over one link to the core."""
    streams = "; ".join(f"softverbs on h{i + 4} -- ib_write_bw -x 1 -D 8 -p {19000 + i} >/dev/null 2>&1 &" for i in range(1, 5)).replace("&;", "&")
    clients = "; ".join(f"(softverbs on h{i} -- ib_write_bw -x 1 -D 8 -p {19000 + i} 10.77.0.{i + 4} | sed -n 's/^ 65536 /h{i} /p') &"
                        for i in range(1, 5)).replace("&;", "&")
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(CROWDED)
        file.flush()
        _, said = lab(8, f"{streams} sleep 2; {clients} wait; softverbs lab link", "--topology", file.name)
    rates = {host: float(rate) for host, rate in re.findall(r"^(h\d) +\d+ +\S+ +(\S+)", said, re.MULTILINE)}
    core = re.search(r"^leaf 1>core:.*", said, re.MULTILINE)
    return rates, core[0] if core else said


def growth():
    for hosts in (2, 8, 16, 32, 64):
        begin = time.monotonic()
        status, said = lab(hosts, "awk '/^Pss:/ {s += $2} END {print s}' /proc/[0-9]*/smaps_rollup; hostname")
        whole = time.monotonic() - begin
        yield hosts, status, whole, int(said.split()[0]) // 1024


def main():
    commit = subprocess.run(["git", "-C", TOP, "describe", "--always", "--dirty"], capture_output=True, text=True, check=True).stdout.strip()
    rows = [*pairs(), ("mckey, one sender and two members", multicast()), *message_passing(), ("pdsh -w h[1-4] hostname", pdsh()), *slurm(), *parsers()]
    rates, core = shares()
    total = sum(rates.values())
    costs = list(growth())
    with write_page(f"{TOP}/docs/evidence/lab.md") as page:
        page.write(f"""# On hosts of a lab

Written by `tests/tool/lab/lab_evidence.py` (`make lab`) on {datetime.date.today()}, at {commit}, on {os.cpu_count()} processors: unmodified programs of
Debian 12 on hosts of a [lab](../how-to/lab.md). A row of MPI that says "yes" had packets of the hosts' devices.

| client | ends well |
|---|---|
""")
        page.writelines(f"| `{name}` | {how} |\n" for name, how in rows)
        page.write("""
## A crowded core

Four streams of `ib_write_bw` for 8 seconds, from the four hosts of one leaf to the four of the other, over a link to the core of 100 Mbit/s (11.9 MiB/s)
that marks with 32 KiB waiting.

| stream | MiB/s | share |
|---|---|---|
""")
        page.writelines(f"| {host} | {rate:.2f} | {100 * rate / total:.0f} % |\n" for host, rate in sorted(rates.items()))
        fairness = total ** 2 / (len(rates) * sum(rate ** 2 for rate in rates.values())) if rates else 0
        page.write(f"""
Jain's index of fairness is {fairness:.3f} (1 where all have the same). The core says: `{core}`.

## Many hosts

From the start of the command to its end, with `hostname` as the program, and the memory of all processes of the lab.

| hosts | seconds | MiB |
|---|---|---|
""")
        page.writelines(f"| {hosts} | {whole:.1f}{'' if status == 0 else ' (failed)'} | {memory} |\n" for hosts, status, whole, memory in costs)


if __name__ == "__main__":
    main()
