/* The order of all locks, outermost first: a thread that holds a lock takes only locks that are below it. No other
 * place defines the order. Builds that check locks (base/lock.h) stop a program that takes two in another order;
 * lock_try and mutex_try do not wait and are not checked.
 *
 * A program may call any verb while one of its threads holds a lock of the rank LOCK_PROGRAM. So these locks are before
 * all others, a thread may hold several of them, and only polling a CQ and posting sends on a queue pair wait for its
 * lock, before taking anything else: a thread that waits for a program never holds a lock of the library.
 *
 * Code under LOCK_PROGRESS takes LOCK_CONTROL only by mutex_try (report/event.c, report/report.c). Under a lock there
 * is no application callback and no blocking call, but for those that ARCHITECTURE.md names. */
#pragma once

enum lock_rank {
    LOCK_UNRANKED,   /* a lock without a place, such as those of tests: not checked */
    LOCK_PROGRAM,    /* cq->consumer: taking completions out, the program's from start_poll to end_poll; qp->batch.lock:
                        posting sends, the program's from wr_start to wr_complete */
    LOCK_JOINING,    /* opening the first device, closing the last, forking (process/process.c) */
    LOCK_CM_JOINING, /* the first use of the connection manager */
    LOCK_DRIVER,     /* the first use of a driver that copies, and of each of its devices (verbs/memory/cuda.c) */
    LOCK_CONTROL,    /* process->control: creating, destroying, counting uses (a mutex; may be held long) */
    LOCK_PROGRESS,   /* process->progress: draining links, timers, the lists of queue pairs that wait for something */
    LOCK_CM,         /* cm->lock: the connection manager; never together with LOCK_QP */
    LOCK_QP,         /* qp->lock: the engine, the send queue; memory of regions is touched only under it */
    LOCK_PORT,       /* udp_port->lock: opening a port's sending sockets */
    LOCK_FLOW,       /* flow->lock of a UDP port, while datagrams are put together */
    LOCK_NODE,       /* node->lock: the peers on this host */
    LOCK_SENDING,    /* shm->sending: one sender at a time in a ring, also in the ring to this process itself */
    LOCK_TAGS,       /* the matching list of an SRQ */
    LOCK_RECEIVES,   /* posted receives, of a queue pair or an SRQ */
    LOCK_CQ,         /* cq->lock: putting entries in, arming; keeping takers of entries out (cq_stop) */
    LOCK_LATE,       /* completions of another libibverbs that a rule holds back (around/late.c) */
    LOCK_CHANNELS,   /* channels of another libibverbs that have a descriptor in front (around/channels.c) */
    LOCK_RAISING,    /* contexts of another libibverbs that have one (around/raised.c) */
    LOCK_FRONT,      /* these descriptors (around/library/front.c) */
    LOCK_OPENING,    /* the list of the tables that this process has open (ipc/table_open.c) */
    LOCK_AROUND,     /* finding objects of another libibverbs (around/library/held.c) */
    LOCK_CALLS,      /* adding and removing layers around calls, and holders of their functions (calls/calls.c) */
    LOCK_TELLING,    /* a finding of the checker is shown, one at a time (check/findings/finding.c) */
    LOCK_SHADOW,     /* the checker's notes of objects (check/shadow/shadow.c) */
    LOCK_SYMBOLS,    /* the checker looks for a line of the program (check/findings/symbol.c) */
    LOCK_TURNING,    /* work of another libibverbs whose end a rule decides (around/turned.c) */
    LOCK_INNERMOST,  /* channel, async, schedule->lock, mw->lock, steering->lock, taps, capture, the ring's pulling,
                        the numbers of an EFA's addresses,
                        table->exclusive, the guard's look at handlers, answers of a UDP port, permission to read this
                        process's memory, the list of event channels: no thread holds two of them */
    LOCK_ATTACHING, /* replacing entries of tables of imported symbols (abi/ucma/attach.c); a fork takes it last, in the
                       program's thread, while it keeps others out of everything */
    LOCK_LAST = LOCK_ATTACHING
};
