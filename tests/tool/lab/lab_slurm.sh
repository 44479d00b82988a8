#!/bin/sh
# Slurm of the distribution on hosts of a lab, for make lab: slurmctld on h1, slurmd on h2 and h3, munged for all. As root, on h1 of
#     softverbs lab --hosts 3 -- tests/tool/lab/lab_slurm.sh FOLDER
# Prints "two nodes: yes" and "one node: yes". All of it ends with the lab, but for the files in FOLDER.
set -eu
folder=$1
chmod 755 "$folder"
dd if=/dev/urandom of="$folder/key" bs=128 count=1 2>/dev/null
chmod 400 "$folder/key"
munged --force --key-file="$folder/key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/seed"
cat >"$folder/slurm.conf" <<CONF
ClusterName=lab
SlurmctldHost=h1
SlurmUser=root
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
NodeName=h2,h3 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES OverSubscribe=YES State=UP
CONF
export SLURM_CONF="$folder/slurm.conf"
slurmctld -c
for host in h2 h3; do softverbs on $host -- slurmd; done
for _ in $(seq 60); do
    [ "$(sinfo -h -o %D -t idle)" = 2 ] && break
    sleep 0.5
done

# The first rank is the server; a client begins before it listens, perhaps.
ranks='if [ $SLURM_PROCID = 0 ]; then exec ibv_rc_pingpong -g INDEX; fi
for i in $(seq 60); do ibv_rc_pingpong -g INDEX SERVER && exit; sleep 0.5; done; exit 1'
try() { # NAME SERVER GID-INDEX OPTIONS...
    name=$1 server=$2 index=$3
    shift 3
    if [ "$(timeout 60 srun -n 2 "$@" sh -c "$(echo "$ranks" | sed "s/SERVER/$server/; s/INDEX/$index/")" 2>&1 | grep -c '1000 iters')" = 2 ]; then echo "$name: yes"; else echo "$name: no"; fi
}
try "two nodes" h2 1 -N 2 softverbs run --net eth0 --
try "one node" localhost 0 -N 1 --overcommit env -u SOFTVERBS_NET softverbs run --
