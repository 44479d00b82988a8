"""The memory that programs have registered, as memory_dump.c writes it down at its end."""
import glob
import os

from clients import BUILD, Failure

OBSERVER = os.path.join(BUILD, "tests/clients/families/libmemory_dump.so")


class Memory:
    """The memory of the programs that ran with its environment."""

    def __init__(self, place):
        self.directory = f"{place.directory}/memory"
        os.makedirs(self.directory, exist_ok=True)

    def environment(self):
        return {"LD_PRELOAD": OBSERVER, "MEMORY_DUMPS": self.directory}

    def of_each(self):
        """The regions of each process, one after the other."""
        found = {}
        for path in sorted(glob.glob(f"{self.directory}/*.*")):
            with open(path, "rb") as file:
                found.setdefault(os.path.basename(path).partition(".")[0], []).append(file.read())
        return [b"".join(regions) for regions in found.values()]

    def two(self):
        each = self.of_each()
        if len(each) != 2:
            raise Failure(f"{len(each)} processes had registered memory, not 2")
        return each

    def must_share(self, size):
        """A message of the one is in the other's memory, too. Neither is of one byte alone, nor were they alike from the start."""
        one, other = self.two()
        if one == other:
            raise Failure("the memory is the same on both sides, and shows nothing")
        if not shares(one, other, size):
            raise Failure(f"no {size} bytes of the one's memory are in the other's")

    def must_have_counted(self):
        """The last value that the one fetched by fetch and add of 1 is one below the value at the other."""
        one, other = self.two()
        for target, fetcher in ((one, other), (other, one)):
            for place in range(0, len(target), 8):
                last = (int.from_bytes(target[place:place + 8], "little") - 1) % (1 << 64)
                if any(fetcher[at:at + 8] == last.to_bytes(8, "little") for at in range(0, len(fetcher), 8)):
                    return
        raise Failure("no value that was fetched is one below a value at the other side")


ANCHOR = 16  # bytes of either end of a message, which are looked up faster than it


def shares(one, other, size, step=8):
    anchor = min(ANCHOR, size)
    known = {other[at:at + anchor] for at in range(len(other) - anchor + 1)}
    for place in range(0, len(one) - size + 1, step):
        end = place + size
        if one[place:place + anchor] not in known or one[end - anchor:end] not in known:
            continue
        message = one[place:end]
        if message[:size // 2] != message[-(size // 2):] and message in other:
            return True
    return False
