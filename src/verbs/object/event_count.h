/* An eventfd in semaphore mode, whose count is the number of events in a list. */
#ifndef VERBS_OBJECT_EVENT_COUNT_H
#define VERBS_OBJECT_EVENT_COUNT_H

#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/fs.h>

/* Takes one count back if there is one. Never blocks, although the program may have left the descriptor blocking:
 * RWF_NOWAIT holds for this call only. When another reader has taken the count, it finds its event gone and waits on.
 * The system call itself, as musl before 1.2.5 has no function for it; -1, in two words: where the descriptor stands.
 */
static inline void event_count_take_back(int fd)
{
    uint64_t one;
    struct iovec to = {&one, sizeof one};
    long taken = syscall(SYS_preadv2, fd, &to, 1L, -1L, -1L, (long)RWF_NOWAIT);
    (void)taken;
}

#endif
