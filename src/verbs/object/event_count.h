/* An eventfd in semaphore mode, whose count is the number of events in a list. */
#ifndef VERBS_OBJECT_EVENT_COUNT_H
#define VERBS_OBJECT_EVENT_COUNT_H

#include <stdint.h>
#include <sys/uio.h>

/* Takes one count back if there is one. Never blocks, although the program may have left the descriptor blocking:
 * RWF_NOWAIT holds for this call only. When another reader has taken the count, it finds its event gone and waits on.
 */
static inline void event_count_take_back(int fd)
{
    uint64_t one;
    struct iovec to = {&one, sizeof one};
    ssize_t taken = preadv2(fd, &to, 1, -1, RWF_NOWAIT);
    (void)taken;
}

#endif
