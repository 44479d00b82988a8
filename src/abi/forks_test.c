/* Forks wait for the threads that hold locks of the library. The test has all of the library inside, and so all of the
 * locks that belong to no object. */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/static_lock.h"
#include "base/testing/patience.h"

enum { LOCKS_LEAST = 7, SECONDS_MOST = 30 };

enum phase { BEFORE, HELD, AFTER };

static atomic_int phase; /* enum phase, of the thread that holds a lock */

static bool try_static(struct static_lock *listed)
{
    return listed->mutex ? mutex_try(listed->mutex) : lock_try(listed->lock);
}

static void release_static(struct static_lock *listed)
{
    if (listed->mutex)
        mutex_release(listed->mutex);
    else
        lock_release(listed->lock);
}

static void *hold_for_a_while(void *listed)
{
    enum { A_WHILE = 5000000 /* ns */ };
    static_lock_take(listed);
    atomic_store(&phase, HELD);
    nanosleep(&(struct timespec){.tv_nsec = A_WHILE}, NULL); /* a fork meets the lock held */
    release_static(listed);
    atomic_store(&phase, AFTER);
    return NULL;
}

static int all_are_free(void)
{
    for (struct static_lock **at = static_locks_begin; at < static_locks_end; at++)
        if (!try_static(*at))
            return 1;
    static_locks_release();
    return 0;
}

static void fork_beside_a_holder(struct static_lock *listed)
{
    int status = -1;
    pthread_t holder;
    atomic_store(&phase, BEFORE);
    assert_int_equal(pthread_create(&holder, NULL, hold_for_a_while, listed), 0);
    pthread_detach(holder); /* ThreadSanitizer takes a thread that the child can't join for a leak of the child */
    PATIENTLY_WHILE (atomic_load(&phase) == BEFORE) /* it may be over by the time that we look */
        ;
    pid_t child = fork();
    if (!child)
        _exit(all_are_free());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    PATIENTLY_WHILE (atomic_load(&phase) != AFTER)
        ;
    assert_int_equal(all_are_free(), 0);
}

static void a_fork_waits_for_who_holds_a_static_lock(void **unused)
{
    assert_true(static_locks_end - static_locks_begin >= LOCKS_LEAST);
    alarm((unsigned)patience(SECONDS_MOST));
    ibv_free_device_list(ibv_get_device_list(NULL)); /* from now on it does */
    for (struct static_lock **at = static_locks_begin; at < static_locks_end; at++)
        fork_beside_a_holder(*at);
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list ? ibv_open_device(list[0]) : NULL;
    assert_non_null(context);
    for (struct static_lock **at = static_locks_begin; at < static_locks_end; at++)
        fork_beside_a_holder(*at);
    ibv_close_device(context);
    ibv_free_device_list(list);
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_fork_waits_for_who_holds_a_static_lock)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
