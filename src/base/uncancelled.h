/* A thread that is cancelled (pthread_cancel(3)) inside a system call ends there, with every lock and every reference
 * that it holds. Of the verbs only the two that wait for events are cancellation points (those that wait until events
 * are acknowledged hold locks then, and are not), and of librdmacm only rdma_get_cm_event. So every other system call
 * that a thread of the program may make is between these two functions, and a cleanup (pthread_cleanup_push) gives back
 * what a wait for events holds. */
#pragma once

#include <pthread.h>

/* Returns the argument for uncancelled_end. Pairs nest. */
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
