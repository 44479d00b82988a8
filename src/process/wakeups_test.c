/* Threads that a round wakes are woken when it has ended, and those that another thread wakes meanwhile are woken at
 * once. */
#include "process/wakeups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "process/process.h"

static struct process process;

static struct wakeup open_wakeup(void)
{
    struct wakeup wakeup = {.count = 0};
    assert_int_equal(event_pipe_open(&wakeup.pipe, O_NONBLOCK | O_CLOEXEC), 0);
    return wakeup;
}

/* Returns how often it was woken since the last time. */
static unsigned count(struct wakeup *wakeup)
{
    unsigned times = 0;
    while (!event_pipe_take(&wakeup->pipe, wakeup->pipe.fd))
        times++;
    return times;
}

static void close_wakeup(struct wakeup *wakeup)
{
    close(wakeup->pipe.fd);
    event_pipe_close(&wakeup->pipe);
}

static int begin(void **state)
{
    memset(&process, 0, sizeof process);
    lock_set_rank(&process.progress, LOCK_PROGRESS);
    STAILQ_INIT(&process.loop.wakeups);
    lock_take(&process.progress);
    return 0;
}

static int end(void **state)
{
    lock_release(&process.progress);
    return 0;
}

static void without_a_round_it_is_woken_at_once(void **state)
{
    struct wakeup one = open_wakeup();
    wakeups_add(&process, &one);
    assert_int_equal(count(&one), 1);
    close_wakeup(&one);
}

static void a_round_wakes_when_it_ends_as_often_as_it_was_asked(void **state)
{
    struct wakeup one = open_wakeup(), other = open_wakeup();
    for (int rounds = 0; rounds < 2; rounds++) {
        wakeups_begin(&process);
        wakeups_add(&process, &one);
        wakeups_add(&process, &other);
        wakeups_add(&process, &one);
        assert_int_equal(count(&one) + count(&other), 0);
        wakeups_end(&process);
        assert_int_equal(count(&one), 2);
        assert_int_equal(count(&other), 1);
    }
    wakeups_begin(&process);
    wakeups_end(&process);
    assert_int_equal(count(&one) + count(&other), 0);
    wakeups_add(&process, &one);
    assert_int_equal(count(&one), 1);
    close_wakeup(&one);
    close_wakeup(&other);
}

static void what_comes_by_another_way_comes_behind_what_was_added(void **state)
{
    struct wakeup one = open_wakeup(), other = open_wakeup();
    wakeups_flush(&process);
    wakeups_begin(&process);
    wakeups_add(&process, &one);
    wakeups_flush(&process);
    assert_int_equal(count(&one), 1);
    wakeups_add(&process, &one);
    wakeups_add(&process, &other);
    assert_int_equal(count(&one) + count(&other), 0);
    wakeups_end(&process);
    assert_int_equal(count(&one), 1);
    assert_int_equal(count(&other), 1);
    wakeups_flush(&process);
    close_wakeup(&one);
    close_wakeup(&other);
}

static void *add(void *wakeup)
{
    wakeups_add(&process, wakeup);
    return NULL;
}

/* A thread wakes sleepers at once while another thread is in a round. */
static void another_thread_wakes_at_once(void **state)
{
    struct wakeup one = open_wakeup();
    pthread_t thread;
    wakeups_begin(&process);
    assert_int_equal(pthread_create(&thread, NULL, add, &one), 0);
    pthread_join(thread, NULL);
    assert_int_equal(count(&one), 1);
    wakeups_end(&process);
    assert_int_equal(count(&one), 0);
    close_wakeup(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_a_round_it_is_woken_at_once, begin, end),
        cmocka_unit_test_setup_teardown(a_round_wakes_when_it_ends_as_often_as_it_was_asked, begin, end),
        cmocka_unit_test_setup_teardown(what_comes_by_another_way_comes_behind_what_was_added, begin, end),
        cmocka_unit_test_setup_teardown(another_thread_wakes_at_once, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
