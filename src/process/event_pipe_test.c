/* The events that a polling program sees, for all that it may do with its descriptor, and with ours. */
#include "process/event_pipe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.h"

static struct event_pipe opened;

static int begin(void **state)
{
    return event_pipe_open(&opened, O_CLOEXEC | O_NONBLOCK);
}

static int end(void **state)
{
    close(opened.fd);
    event_pipe_close(&opened);
    return 0;
}

static struct rlimit limit_before;

static void set_limit(rlim_t limit)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){limit, limit_before.rlim_max}), 0);
}

static short polled(int fd)
{
    struct pollfd descriptor = {.fd = fd, .events = POLLIN | POLLOUT | POLLPRI};
    assert_true(poll(&descriptor, 1, 0) >= 0);
    return descriptor.revents;
}

static unsigned take_all(void)
{
    unsigned taken = 0;
    while (!event_pipe_take(&opened, opened.fd))
        taken++;
    assert_int_equal(errno, EAGAIN);
    return taken;
}

static void it_is_readable_while_events_wait_and_never_writable(void **state)
{
    assert_int_equal(polled(opened.fd), 0);
    event_pipe_add(&opened, 2);
    assert_int_equal(polled(opened.fd), POLLIN);
    assert_int_equal(event_pipe_take(&opened, opened.fd), 0);
    assert_int_equal(polled(opened.fd), POLLIN);
    event_pipe_take_back(&opened);
    assert_int_equal(polled(opened.fd), 0);
    event_pipe_take_back(&opened);
    assert_int_equal(take_all(), 0);
}

static void each_event_is_an_edge(void **state)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET};
    int edges = epoll_create1(EPOLL_CLOEXEC);
    assert_int_equal(epoll_ctl(edges, EPOLL_CTL_ADD, opened.fd, &event), 0);
    assert_int_equal(epoll_wait(edges, &event, 1, 0), 0);
    for (int i = 0; i < 3; i++) {
        event_pipe_add(&opened, 1);
        assert_int_equal(epoll_wait(edges, &event, 1, 0), 1);
        assert_int_equal(event.events, EPOLLIN);
        assert_int_equal(epoll_wait(edges, &event, 1, 0), 0);
    }
    close(edges);
    assert_int_equal(take_all(), 3);
}

/* A pipe has place for some 65536. */
static void more_events_than_have_place_are_all_taken(void **state)
{
    enum { LIST = 5000, LISTS = 40 };
    for (int i = 0; i < LISTS; i++)
        event_pipe_add(&opened, LIST);
    assert_int_equal(take_all(), LIST * LISTS);
    assert_int_equal(atomic_load(&opened.owed), 0);
}

static void a_program_that_closes_its_descriptor_hurts_nobody(void **state)
{
    close(opened.fd);
    event_pipe_add(&opened, 1); /* would raise SIGPIPE */
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(ends[0], opened.fd);
    assert_int_equal(write(ends[1], "mine", 4), 4);
    event_pipe_take_back(&opened);
    char bytes[8];
    assert_int_equal(read(ends[0], bytes, sizeof bytes), 4);
    close(ends[1]); /* `end` closes the other */
}

/* If the limit is low, it may also get the number of the library's descriptor. */
static void what_a_program_opens_in_its_place_is_left_alone(void **state)
{
    set_limit(32);
    close(opened.fd);
    event_pipe_close(&opened);
    assert_int_equal(event_pipe_open(&opened, O_CLOEXEC | O_NONBLOCK), 0);
    char name[] = "/tmp/event_pipe.XXXXXX", byte;
    int file = mkostemp(name, O_CLOEXEC);
    unlink(name);
    assert_int_equal(write(file, "mine", 4), 4);
    assert_int_equal(lseek(file, 0, SEEK_SET), 0);
    assert_int_equal(dup3(file, opened.own, O_CLOEXEC), opened.own);
    event_pipe_add(&opened, 3);
    event_pipe_take_back(&opened);
    assert_int_equal(lseek(file, 0, SEEK_CUR), 0);
    assert_int_equal(pread(file, &byte, 1, 4), 0);
    close(file);
    set_limit(limit_before.rlim_cur);
}

static void the_programs_descriptor_lies_low_and_ours_high(void **state)
{
    assert_true(opened.fd < descriptor_floor());
    assert_true(opened.own >= descriptor_floor());
    assert_int_equal(opened.reader, -1);
    assert_true(fcntl(opened.own, F_GETFD) & FD_CLOEXEC);
}

static void where_the_limit_has_no_place_it_stays(void **state)
{
    set_limit(8);
    int ours[8], count = 0;
    while ((ours[count] = dup(0)) >= 0)
        count++;
    int last = ours[0];
    assert_true(descriptor_raise(last) == last);
    while (count--)
        close(ours[count]);
    set_limit(limit_before.rlim_cur);
}

/* Exit status: 0: passed; 1: failed; 77: such a namespace can't be made here. */
static int live_without_proc(void)
{
    struct event_pipe pipe;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) || mount("none", "/proc", "tmpfs", 0, NULL))
        return 77;
    if (event_pipe_open(&pipe, O_CLOEXEC | O_NONBLOCK) || pipe.reader < 0)
        return 1;
    event_pipe_add(&pipe, 2);
    event_pipe_take_back(&pipe); /* may be left */
    if (event_pipe_take(&pipe, pipe.fd))
        return 1;
    close(pipe.fd);
    event_pipe_add(&pipe, 1);
    event_pipe_close(&pipe);
    return 0;
}

static void without_proc_nothing_raises_a_signal_either(void **state)
{
    int status;
    pid_t child = fork();
    if (!child)
        _exit(live_without_proc());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_readable_while_events_wait_and_never_writable, begin, end),
        cmocka_unit_test_setup_teardown(each_event_is_an_edge, begin, end),
        cmocka_unit_test_setup_teardown(more_events_than_have_place_are_all_taken, begin, end),
        cmocka_unit_test_setup_teardown(a_program_that_closes_its_descriptor_hurts_nobody, begin, end),
        cmocka_unit_test_setup_teardown(what_a_program_opens_in_its_place_is_left_alone, begin, end),
        cmocka_unit_test_setup_teardown(the_programs_descriptor_lies_low_and_ours_high, begin, end),
        cmocka_unit_test(where_the_limit_has_no_place_it_stays),
        cmocka_unit_test(without_proc_nothing_raises_a_signal_either),
    };
    getrlimit(RLIMIT_NOFILE, &limit_before);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
