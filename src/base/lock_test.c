/* Built twice: with the checks, and as a program is built that pays nothing for them. */
#include "base/lock.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/patience.h"

static struct lock outer = LOCK_INITIAL(LOCK_QP), inner = LOCK_INITIAL(LOCK_CQ);
static struct lock twin = LOCK_INITIAL(LOCK_CQ), unranked = LOCK_INITIAL(LOCK_UNRANKED);
static struct lock programs[2] = {LOCK_INITIAL(LOCK_PROGRAM), LOCK_INITIAL(LOCK_PROGRAM)};
static struct mutex control = MUTEX_INITIAL(LOCK_CONTROL);

/* The signal that ends a child which calls `deed`; 0: the child returns from it. */
static int ends_with(void (*deed)(void))
{
    int status;
    pid_t child = fork();
    if (!child) {
        signal(SIGILL, SIG_DFL);
        signal(SIGTRAP, SIG_DFL);
        close(STDERR_FILENO);
        deed();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || (WIFEXITED(status) && !WEXITSTATUS(status)));
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void in_order(void)
{
    lock_take(&programs[1]);
    lock_take(&programs[0]);
    mutex_take(&control);
    lock_take(&outer);
    lock_take(&inner);
    lock_assert_held(&control);
    lock_assert_held(&outer);
    lock_assert_held(&inner);
    lock_release(&outer);
    lock_release(&inner);
    mutex_release(&control);
}

static void in_wrong_order(void)
{
    lock_take(&inner);
    lock_take(&outer);
}

static void mutex_in_wrong_order(void)
{
    lock_take(&outer);
    mutex_take(&control);
}

static void two_of_a_rank(void)
{
    lock_take(&inner);
    lock_take(&twin);
}

static void trying_in_any_order(void)
{
    lock_take(&inner);
    if (!lock_try(&outer) || !mutex_try(&control))
        _exit(1);
    lock_take(&unranked);
}

static void again_after_release(void)
{
    lock_take(&inner);
    lock_release(&inner);
    lock_take(&outer);
    lock_take(&inner);
}

static void without_the_lock(void)
{
    lock_take(&outer);
    lock_release(&outer);
    lock_assert_held(&outer);
}

static void *take_outer(void *unused)
{
    lock_take(&outer);
    return NULL;
}

static void while_another_thread_holds_it(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, take_outer, NULL) || pthread_join(thread, NULL))
        _exit(1);
    lock_assert_held(&outer);
}

static void what_keeps_the_order_goes_on(void **state)
{
    assert_int_equal(ends_with(in_order), 0);
    assert_int_equal(ends_with(trying_in_any_order), 0);
    assert_int_equal(ends_with(again_after_release), 0);
}

#ifdef LOCK_CHECKS

static void a_wrong_order_ends_the_process(void **state)
{
    assert_int_not_equal(ends_with(in_wrong_order), 0);
    assert_int_not_equal(ends_with(mutex_in_wrong_order), 0);
    assert_int_not_equal(ends_with(two_of_a_rank), 0);
}

static void a_lock_that_is_needed_and_not_held_ends_the_process(void **state)
{
    assert_int_not_equal(ends_with(without_the_lock), 0);
    assert_int_not_equal(ends_with(while_another_thread_holds_it), 0);
}

#else

static void nothing_is_checked_and_nothing_is_paid(void **state)
{
    assert_int_equal(ends_with(in_wrong_order), 0);
    assert_int_equal(ends_with(mutex_in_wrong_order), 0);
    assert_int_equal(ends_with(two_of_a_rank), 0);
    assert_int_equal(ends_with(without_the_lock), 0);
    assert_int_equal(ends_with(while_another_thread_holds_it), 0);
    assert_int_equal(sizeof(struct lock), 1);
    assert_int_equal(sizeof(struct mutex), sizeof(pthread_mutex_t));
}

#endif

/* -- a thread that holds a lock for a millisecond, and takes it again some nanoseconds later */

enum { TURNS = 5, ROUNDS_MOST = 3000 };

static struct lock coveted = LOCK_INITIAL(LOCK_QP);
static atomic_int rounds, turns;

/* Takes at most one turn in each round. */
static void *take_turns(void *unused)
{
    while (atomic_load(&turns) < TURNS) {
        int round = atomic_load(&rounds);
        lock_take(&coveted);
        atomic_fetch_add(&turns, 1);
        lock_release(&coveted);
        PATIENTLY_WHILE (atomic_load(&turns) < TURNS && atomic_load(&rounds) == round)
            sched_yield();
    }
    return unused;
}

/* Counts time of the processor: on a busy machine the other thread may not run for long. */
static void hold_for_a_millisecond(void)
{
    struct timespec start, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < 1000000);
}

static void who_takes_it_again_at_once_lets_others_in(void **state)
{
    pthread_t other;
    lock_take(&coveted);
    assert_int_equal(pthread_create(&other, NULL, take_turns, NULL), 0);
    while (atomic_load(&turns) < TURNS && atomic_fetch_add(&rounds, 1) < ROUNDS_MOST) {
        hold_for_a_millisecond();
        if (lock_release_wanted(&coveted))
            lock_let_others_in();
        lock_take(&coveted);
    }
    lock_release(&coveted);
    assert_true(atomic_load(&rounds) < ROUNDS_MOST);
    pthread_join(other, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_keeps_the_order_goes_on),
        cmocka_unit_test(who_takes_it_again_at_once_lets_others_in),
#ifdef LOCK_CHECKS
        cmocka_unit_test(a_wrong_order_ends_the_process),
        cmocka_unit_test(a_lock_that_is_needed_and_not_held_ends_the_process),
#else
        cmocka_unit_test(nothing_is_checked_and_nothing_is_paid),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
