/* A thread that is cancelled (pthread_cancel(3)) inside a system call ends there, with every lock and every reference
 * that it holds. Verbs are no cancellation points but for the two that wait for events (nor those that wait until
 * events are acknowledged, which hold locks then), and of librdmacm rdma_get_cm_event alone is one. So other system
 * calls that may be made in a thread of the program stand between these two, and what a wait for events holds is given
 * back by a cleanup (pthread_cleanup_push). */
#ifndef BASE_UNCANCELLED_H
#define BASE_UNCANCELLED_H

#include <pthread.h>

/* Answers what uncancelled_end wants. They nest. */
static inline int uncancelled_begin(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void uncancelled_end(int before)
{
    pthread_setcancelstate(before, &before);
}

#endif
