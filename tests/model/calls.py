#!/usr/bin/env python3
"""Checks that the code under test calls nothing that the model does not answer; prints TAP.

Usage: calls.py ARCHIVE

A call that seam.h does not replace would go to the real kernel, with descriptors that exist in the model only. Functions
that look at nothing but their arguments are listed here.
"""
import re
import subprocess
import sys

HARMLESS = """__errno_location __isoc23_sscanf __isoc23_strtol __isoc23_strtoul __isoc99_sscanf _GLOBAL_OFFSET_TABLE_ memcmp snprintf strchr strcmp strcspn strerror
strlen strncmp strnlen strrchr strtol strtoul""".split()
HARMLESS += "ether_frame_check ether_parse ether_write_checksums op_table payload_is_there srd_refusal time_scale time_scaled_slow wire_decode wire_encode".split()
# The functions that distributions' compilers put in the place of calls, and where a function returns.
HARMLESS += "__memcpy_chk __memmove_chk __memset_chk __snprintf_chk __stack_chk_fail __vsnprintf_chk".split()
HARMLESS.append("munlock")  # of memory that is not locked, as the model's
NEVER_REACHED = ["ioctl",  # registers of the model are closed by signal
                 "fclose", "fread",  # model_fopen opens nothing
                 "guarded_compare_and_swap", "guarded_fetch_and_add",  # no work of the model is an atomic
                 "foreign_compare_and_swap", "foreign_fetch_and_add", "foreign_gather", "foreign_payload_copy", "foreign_send", "foreign_settle",
                 "foreign_settle_message"]  # no memory of the model is a GPU's
OURS = re.compile(r"(__tsan|model|schedule|host|memory|trace)_")


def main():
    names = subprocess.run(["nm", sys.argv[1]], check=True, capture_output=True, text=True).stdout
    defined = set(re.findall(r" [A-TV-Za-tv-z] (\w+)$", names, re.MULTILINE))
    called = set(re.findall(r" U (\w+)$", names, re.MULTILINE))
    unknown = sorted(name for name in called - defined - set(HARMLESS) - set(NEVER_REACHED) if not OURS.match(name))
    print("1..1")
    print(f"{'not ok' if unknown else 'ok'} 1 - the model answers every call of the code under test")
    for name in unknown:
        print(f"# {name}: put it into seam.h and answer it in host*.c, or list it here if it looks at its arguments only")
    return bool(unknown)


if __name__ == "__main__":
    sys.exit(main())
