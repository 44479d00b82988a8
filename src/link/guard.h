/* The signal handler that makes a fault of wire/guarded.h end in false.
 *
 * It is the process's handler of SIGSEGV and SIGBUS, and recognises our own faults by the instruction that faulted. All
 * other faults are passed to the handler that the program had set, as the kernel would have called it: with its mask
 * and on its stack; if that is SIG_DFL, the process ends with the same signal, address and registers. A handler that
 * the program sets later replaces ours, so the library looks for one every 4 ms while data moves, and sets ours again.
 * Each time this is another entry function with its own copy of the program's handler, so a program that restores or
 * calls the handler that it found gets the one it had then.
 *
 * A fault would kill a thread that blocks one of the signals. So each thread looks at its mask every 4 ms, too, and
 * opens it between begin and end where it blocks one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/likely.h"
#include "base/nanos.h"

/* Takes the signals. Thread-safe; further calls look whether we still have them. */
void guard_start(void);

/* Called around accesses of wire/guarded.h, on any thread. `now` is the time of CLOCK_MONOTONIC, give or take some
 * milliseconds. Pairs nest; guard_end takes what guard_begin returned. */
static inline bool guard_begin(nanos now);
/* Begins with the time now, read in the cheapest way. */
bool guard_begin_now(void);
static inline void guard_end(bool opened);

/* Copies like memcpy(3), between a begin and an end of its own. False: part of the memory is gone. */
bool guard_copy(void *to, const void *from, size_t length);

/* Memory of a file that others can truncate, which ordinary code reads and writes. A fault there (SIGBUS) replaces all
 * of it with zeros that belong to this process alone, so that the faulting thread can continue, and calls `lost`, in
 * the signal's handler: only async-signal-safe functions there. It may be called several times. */
struct guard_region {
    void *start;
    size_t length;
    void (*lost)(struct guard_region *);
};

/* Guards the region until it is removed; takes the signals as guard_start does. The struct stays the caller's.
 * Thread-safe. False: too many are guarded already. */
bool guard_region_add(struct guard_region *);
void guard_region_remove(struct guard_region *);

/* Memory that is protected on purpose, so that faults there (SIGSEGV) are seen. `open` makes it accessible again and
 * returns true; false: it is not protected memory. `instruction` is the program's, NULL where an access of
 * wire/guarded.h has faulted. It is called in the signal's handler. `end` returns where the protected memory with
 * this byte ends, 0: the byte is not protected; on any thread. */
struct guard_protector {
    bool (*open)(const void *at, const void *instruction);
    uintptr_t (*end)(uintptr_t at);
};
/* Adds a protector, which is never removed; takes the signals as guard_start does. Thread-safe. */
void guard_protect_by(const struct guard_protector *);
/* The first `end` of the protectors that is not 0. Such memory has no access now, but belongs to the program. */
uintptr_t guard_protected_end(uintptr_t at);

/* --- how */

enum { GUARD_TICK = 22 }; /* a tick is 2^22 ns */

struct guard_thread {
    uint32_t looked; /* tick in which the thread was last found to block none of the signals */
    uint8_t closes;  /* between a begin that opened the mask and its end: a bit for each signal that was blocked */
};
extern _Thread_local struct guard_thread guard_thread __attribute__((tls_model("initial-exec")));

bool guard_begin_anew(uint32_t tick);
void guard_end_opened(void);

static inline bool guard_begin(nanos now)
{
    uint32_t tick = (uint32_t)(now >> GUARD_TICK);
    return unlikely(guard_thread.looked != tick) && guard_begin_anew(tick);
}

static inline void guard_end(bool opened)
{
    if (unlikely(opened))
        guard_end_opened();
}
