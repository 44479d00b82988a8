#!/usr/bin/env python3
"""Checks that a fork knows each lock of src/; prints TAP.

Usage: locks.py DIRECTORY [--bare [MEMBER=PLACE=WORDS]...]

A thread that does not exist in a fork's child may hold a lock, which then no thread gives back in the child. So a lock that belongs to no object
is defined by LOCK_STATIC or MUTEX_STATIC (src/base/static_lock.h), which put it into the list that the fork walks. A lock that is a
member of a type is in MEMBERS, with the sources where the fork takes it or where the child gives it back, which must have those words. --bare: without the members of this tree.
"""
import collections
import os
import re
import sys

sys.dont_write_bytecode = True
from tree import SUPPORT, judged, strip

HOME = ("src/base/lock.h", "src/base/static_lock.h")
LOCK = r"(?:struct\s+(?:lock|mutex)|pthread_(?:mutex|rwlock|spinlock)_t|sem_t|mtx_t)"
STATIC = re.compile(rf"^(?:(?:_Alignas\(\w+\)|_Thread_local)\s+)*(?:{LOCK}|static\s[^;{{}}()]*\b{LOCK})\s+(\w+)|^\s+static\s+{LOCK}\s+(\w+)", re.M)
INITIAL = re.compile(r"\b(?:LOCK_INITIAL|MUTEX_INITIAL|PTHREAD_(?:MUTEX|RWLOCK)_INITIALIZER)\b")
MEMBER = re.compile(rf"^\s+(?:_Alignas\(\w+\)\s+)?{LOCK}\s+(\w+)(?:\[\w+\])?;", re.M)

PROCESS = "src/process/process.c"
MEMBERS = {
    "src/gsi/cm/cm.h: lock": ("src/gsi/cm/cm.c", "lock_take(&cm->lock)"),
    "src/ipc/state.h: lock": ("src/ipc/node.c", "lock_inherit(&node->lock)"),
    "src/ipc/table.h: exclusive": ("src/ipc/table_open.c", "lock_inherit(&table->exclusive)"),
    "src/link/shm.c: pulling": ("src/link/shm.c", "lock_inherit(&shm->pulling)"),
    "src/link/shm.c: sending": ("src/link/shm.c", "lock_inherit(&shm->sending)"),
    "src/link/udp/udp_icmp.h: lock": ("src/link/udp/udp.c", "lock_inherit(&port->icmp.lock)"),
    "src/link/udp/udp_state.h: lock": ("src/link/udp/udp.c", "lock_inherit(&port->lock)", "lock_inherit(&port->flows[family][i].lock)"),
    "src/process/process.h: control": (PROCESS, "mutex_take(&the_process->control)"),
    "src/process/process.h: progress": (PROCESS, "lock_take(&the_process->progress)"),
    "src/runtime/schedule.h: lock": (PROCESS, "lock_take(&the_process->schedule.lock)"),
    "src/tap/capture.c: lock": ("src/verbs/send/transmit.c", "unlikely(qp->process->poller.restraints)"),  # a child sends nothing
    "src/tap/taps.h: lock": ("src/tap/delay.c", "*taps->closed"),  # a child sends nothing
    "src/verbs/kinds/ethernet/steering.c: lock": ("src/verbs/kinds/ethernet/steering.c", "lock_inherit(&steering->lock)"),
    "src/verbs/memory/indirect.h: lock": ("src/verbs/send/transmit.c", "unlikely(qp->process->poller.restraints)"),  # a child moves no data
    "src/verbs/memory/mw.h: lock": ("src/verbs/create/mw_allocate.c", "lock_inherit(&mw->lock)"),
    "src/verbs/object/address_numbers.c: lock": ("src/verbs/object/address_numbers.c", "lock_inherit(&numbers->lock)"),
    "src/verbs/object/async.h: lock": ("src/verbs/context/inherit.c", "lock_inherit(&context->async.lock)"),
    "src/verbs/queue/comp_channel.h: lock": ("src/verbs/queue/comp_channel.c", "lock_inherit(&channel->lock)"),
    "src/verbs/qp/qp.h: lock": ("src/verbs/life/qp_create.c", "lock_inherit(&qp->lock)", "lock_inherit(&qp->batch.lock)"),
    "src/verbs/queue/cq.h: consumer": ("src/verbs/create/cq_create.c", "lock_inherit(&cq->consumer)"),
    "src/verbs/queue/cq.h: lock": ("src/verbs/create/cq_create.c", "lock_inherit(&cq->lock)"),
    "src/verbs/queue/receive_queue.h: lock": ("src/verbs/life/qp_create.c src/verbs/create/srq_create.c", "lock_inherit(&qp->receives.own.lock)", "lock_inherit(&srq->queue.lock)"),
    "src/verbs/kinds/srq_tags.c: lock": ("src/verbs/kinds/srq_tags.c", "lock_inherit(&srq->tags->lock)"),
}


def sources(top):
    for folder, _, names in os.walk(os.path.join(top, "src")):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), top)
            if name.endswith((".c", ".h")) and not SUPPORT.search(path) and path not in HOME:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    yield path, file.read()


def unlisted(path, text):
    """Locks of no object that are not in the list."""
    code = strip(text)
    for found in STATIC.finditer(code):
        yield f"{path}: {found[1] or found[2]}: not by LOCK_STATIC or MUTEX_STATIC"
    for found in re.finditer(r"\bMUTEX_STATIC\((\w+), LOCK_INNERMOST\)", code):
        yield f"{path}: {found[1]}: a fork holds other locks of LOCK_INNERMOST when it waits for this one; give it a rank of its own"
    for found in INITIAL.finditer(code):
        yield f"{path}: {found[0]}, which only {HOME[1]} may use"


def judge_members(counts, texts, known):
    for name, count in sorted(counts.items()):
        place, *words = known.get(name, ("",))
        text = "".join(texts.get(path, "") for path in place.split())
        lacking = [word for word in words if word not in text]
        if not words:
            yield f"{name}: MEMBERS does not say where a fork takes it, or a child gives it back"
        elif len(words) < count:
            yield f"{name}: {count} of that name, and MEMBERS knows of {len(words)}"
        for word in lacking:
            yield f"{name}: {place} has no {word}"
    for name in sorted(known.keys() - counts.keys()):
        yield f"{name}: there is none; take it out of MEMBERS"


def main():
    texts = dict(sources(sys.argv[1]))
    known = {} if "--bare" in sys.argv else MEMBERS
    for word in sys.argv[2:]:
        if word != "--bare":  # for locks_test.py: MEMBER=PLACE=WORDS
            name, *where = word.split("=")
            known[name] = tuple(where)
    statics = [fault for path, text in texts.items() for fault in unlisted(path, text)]
    members = collections.Counter(f"{path}: {name}" for path, text in texts.items() for name in MEMBER.findall(strip(text)))
    wrong = list(judge_members(members, texts, known))
    return judged(("each lock of no object is in the list that a fork walks", statics),
                  ("each lock of an object is taken by the fork, or given back in the child", wrong))


if __name__ == "__main__":
    sys.exit(main())
