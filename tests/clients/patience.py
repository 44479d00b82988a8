"""The time that tests wait for an event, and how often they try a step that chance may spoil: src/base/testing/patience.h for scripts.

The variable TEST_PATIENCE multiplies each wait, for sanitizers, emulators and machines that are busy. A script's own limits stay in
place; clients.py and cases.py pass them through `patience` where they wait.
"""
import os
import time

FACTOR = float(os.environ.get("TEST_PATIENCE") or 1)


def patience(seconds):
    """The seconds, multiplied."""
    return seconds * FACTOR


def until(seconds):
    """The time (time.monotonic) at which the seconds, multiplied, are over."""
    return time.monotonic() + patience(seconds)


def tries(what, most, why, once, failures):
    """Calls `once` until it raises no exception of `failures`, at most `most` times, and gives its result. `why` names the
    circumstance that spoils a try though nothing is wrong. A line in TAP counts the tries, if more than one was needed; the end
    of `make check` shows it."""
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
