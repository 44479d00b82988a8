/* Where the threads of another process are seen. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc/elsewhere.h"

static pid_t start(void (*what)(void))
{
    pid_t child = fork();
    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    what();
    _exit(0);
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void spin(void)
{
    for (volatile uint64_t i = 0;; i++)
        ;
}

static void sleep_long(void)
{
    for (;;)
        syscall(SYS_ppoll, NULL, 0L, NULL, NULL, 0L);
}

static bool comes_to_be(pid_t child, long call)
{
    for (int i = 0; i < 2000; i++, nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL))
        if (elsewhere_all(child, call))
            return true;
    return false;
}

static void who_runs_is_not_seen_and_who_is_stopped_is(void **state)
{
    int status;
    pid_t child = start(spin);
    for (int i = 0; i < 100; i++)
        assert_false(elsewhere_all(child, SYS_process_vm_writev));
    kill(child, SIGSTOP);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(elsewhere_all(child, SYS_process_vm_writev));
    end(child);
}

static void who_waits_in_the_call_is_not_elsewhere(void **state)
{
    pid_t child = start(sleep_long);
    assert_true(comes_to_be(child, SYS_process_vm_writev));
    for (int i = 0; i < 100; i++)
        assert_false(elsewhere_all(child, SYS_ppoll));
    end(child);
}

static void nothing_is_known_of_a_process_that_is_not_there(void **state)
{
    pid_t child = start(spin);
    end(child);
    assert_false(elsewhere_all(child, SYS_process_vm_writev));
    assert_false(elsewhere_all(0, SYS_process_vm_writev));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_runs_is_not_seen_and_who_is_stopped_is),
        cmocka_unit_test(who_waits_in_the_call_is_not_elsewhere),
        cmocka_unit_test(nothing_is_known_of_a_process_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
