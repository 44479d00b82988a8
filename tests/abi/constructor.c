/* A library whose constructor uses verbs, when another thread of its program does so, too. */
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

extern atomic_bool constructing; /* the program's: its other thread waits for it */

static void __attribute__((constructor)) construct(void)
{
    enum { A_WHILE = 20000 }; /* microseconds */
    atomic_store(&constructing, true);
    usleep(A_WHILE); /* the other thread is within its call by then */
    ibv_free_device_list(ibv_get_device_list(NULL));
}
