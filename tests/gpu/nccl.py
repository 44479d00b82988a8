"""Collectives of PyTorch over NCCL, each element compared on the GPU. RANK is 0 or 1; run.sh starts both. With the argument `late`,
rank 1 launches a kernel for the first time while the kernel of its all_reduce waits for rank 0."""
import datetime
import faulthandler
import os
import sys
import time

import torch
import torch.distributed as dist

LENGTHS = (2, 1024, 262144, 4194304)


def differs(found, wanted):
    torch.cuda.synchronize()
    return int(not torch.equal(found, wanted))


def collectives(count, rank):
    """The number of wrong results."""
    base = torch.arange(count, device="cuda", dtype=torch.float32) % 1000
    mine = base + rank
    total = mine.clone()
    dist.all_reduce(total)
    wrong = differs(total, base * 2 + 1)
    parts = [torch.empty_like(mine) for _ in range(2)]
    dist.all_gather(parts, mine)
    wrong += differs(parts[0], base) + differs(parts[1], base + 1)
    root = mine.clone()
    dist.broadcast(root, 0)
    wrong += differs(root, base)
    received = torch.empty_like(mine)
    pair = [dist.P2POp(dist.isend, mine, 1 - rank), dist.P2POp(dist.irecv, received, 1 - rank)]
    for request in dist.batch_isend_irecv(pair):
        request.wait()
    return wrong + differs(received, base + 1 - rank)


def late(rank):
    """The number of wrong results."""
    mine = torch.full((1 << 20,), rank + 1.0, device="cuda")
    wanted = torch.full_like(mine, 3.0)
    small = torch.full((8,), 0.5, device="cuda")
    dist.barrier()
    torch.cuda.synchronize()
    if rank == 0:
        time.sleep(1)  # the late rank
    work = dist.all_reduce(mine, async_op=True)
    if rank == 1:
        time.sleep(0.2)  # the reduction has begun
        torch.erfinv(small)
    work.wait()
    return differs(mine, wanted)


def main():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(0)
    faulthandler.dump_traceback_later(20)  # to the log, where a rank hangs
    dist.init_process_group("nccl", rank=rank, world_size=2, timeout=datetime.timedelta(seconds=40))
    if rank == 0:
        print("torch", torch.__version__, "nccl", torch.cuda.nccl.version(), torch.cuda.get_device_name(0), flush=True)
    wrong = late(rank) if sys.argv[1:] == ["late"] else 0
    for count in LENGTHS if not sys.argv[1:] else ():
        begun = time.perf_counter()
        wrong += collectives(count, rank)
        if rank == 0:
            print(f"all_reduce and others, {count * 4} bytes: {time.perf_counter() - begun:.3f} s", flush=True)
    print("rank", rank, "wrong", wrong, flush=True)
    faulthandler.cancel_dump_traceback_later()
    dist.destroy_process_group()
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
