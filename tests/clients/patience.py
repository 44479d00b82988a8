"""How long tests wait for what must come, and how often they try what chance may spoil: src/base/testing/patience.h for scripts.

The variable TEST_PATIENCE multiplies each wait, for sanitizers, emulators and machines that are busy. What a script's own limits are stays
in place; clients.py and cases.py pass them through `patience` where they wait.
"""
import os
import time

FACTOR = float(os.environ.get("TEST_PATIENCE") or 1)


def patience(seconds):
    """So many seconds, multiplied."""
    return seconds * FACTOR


def until(seconds):
    """The time (time.monotonic) at which so many seconds, multiplied, are over."""
    return time.monotonic() + patience(seconds)


def tries(what, most, why, once, failures):
    """What `once` returns, called until it raises none of `failures`, but not more than `most` times. `why` says what spoils a try though
    nothing is wrong. A line in TAP says how many were needed, if more than one; the end of `make check` shows it."""
    for number in range(1, most + 1):
        try:
            result = once()
        except failures:
            if number < most:
                continue
            print(f"# tries: {most} of {most}, all in vain: {what}: {why}", flush=True)
            raise
        if number > 1:
            print(f"# tries: {number} of {most}: {what}: {why}", flush=True)
        return result
    return None
