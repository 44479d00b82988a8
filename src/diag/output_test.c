#include "diag/output.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/patience.h"

enum { APPEND = O_WRONLY | O_APPEND | O_CREAT };

static char path[] = "output_test.XXXXXX";

static int begin(void **state)
{
    strcpy(path + sizeof path - 7, "XXXXXX");
    int file = mkstemp(path);
    return file < 0 || close(file);
}

static int end(void **state)
{
    return unlink(path);
}

static off_t size_of(const char *name)
{
    struct stat status;
    assert_int_equal(stat(name, &status), 0);
    return status.st_size;
}

static bool is_pending(int number)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, number);
}

/* The default of SIGPIPE, which would end this program. */
static void a_pipe_without_a_reader_is_an_error_only(void **state)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    struct output output = {.descriptor = ends[1]};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(output_write(&output, "line\n", 5), 0);
        assert_int_equal(errno, EPIPE);
    }
    assert_false(is_pending(SIGPIPE));
    close(ends[1]);
}

/* Writes until the reader is full. The descriptors block; the alarm ends a write that waits. */
static void fill(const struct output *output)
{
    static const char block[512];
    while (output_write(output, block, sizeof block) == sizeof block)
        ;
    assert_int_equal(errno, EAGAIN);
    while (output_write(output, block, 1) == 1)
        ;
    assert_int_equal(errno, EAGAIN);
}

static void no_reader_of_a_pipe_is_waited_for(void **state)
{
    int ends[2];
    char byte[4096];
    assert_int_equal(pipe(ends), 0);
    struct output output = {.descriptor = ends[1]};
    fill(&output);
    assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0); /* the program's descriptor is as it was */
    assert_int_equal(read(ends[0], byte, sizeof byte), sizeof byte);
    assert_int_equal(output_write(&output, "line\n", 5), 5);
    close(ends[0]);
    close(ends[1]);
}

static void a_pipe_takes_all_or_nothing(void **state)
{
    static char block[3 << 16], sink[sizeof block]; /* more than a pipe holds at first */
    int ends[2], unread;
    assert_int_equal(pipe(ends), 0);
    struct output output = {.descriptor = ends[1]};
    assert_int_equal(output_write(&output, block, sizeof block), sizeof block);
    assert_int_equal(read(ends[0], sink, sizeof sink), sizeof sink);
    fill(&output);
    assert_int_equal(ioctl(ends[0], FIONREAD, &unread), 0);
    for (size_t length = 5000; length < 16 << 20; length *= 2) { /* up to more than the system lets it grow to */
        static char large[16 << 20];
        int before = unread;
        size_t written = output_write(&output, large, length);
        assert_true(written == length || !written);
        assert_int_equal(ioctl(ends[0], FIONREAD, &unread), 0);
        assert_int_equal(unread, before + (int)written);
    }
    close(ends[0]);
    close(ends[1]);
}

static void no_reader_of_a_socket_is_waited_for(void **state)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct output output = {.descriptor = ends[1]};
    fill(&output);
    close(ends[0]);
    assert_int_equal(output_write(&output, "line\n", 5), 0);
    assert_int_equal(errno, EPIPE);
    close(ends[1]);
}

/* The terminal is stopped by Ctrl-S; then its window is a program that no longer reads. */
static void no_reader_of_a_terminal_is_waited_for(void **state)
{
    char name[64];
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && !grantpt(master) && !unlockpt(master) && !ptsname_r(master, name, sizeof name));
    struct output output = {.descriptor = open(name, O_RDWR | O_NOCTTY)};
    assert_true(output.descriptor >= 0);
    assert_int_equal(output_write(&output, "line\n", 5), 5);
    assert_int_equal(tcflow(output.descriptor, TCOOFF), 0);
    assert_int_equal(output_write(&output, "line\n", 5), 0);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(tcflow(output.descriptor, TCOON), 0);
    fill(&output);
    close(master);
    close(output.descriptor);
}

static void the_programs_own_signal_stays(void **state)
{
    int ends[2];
    sigset_t pipes, before;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &pipes, &before), 0);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    struct output output = {.descriptor = ends[1]};
    assert_int_equal(output_write(&output, "line\n", 5), 0);
    assert_false(is_pending(SIGPIPE));
    pthread_kill(pthread_self(), SIGPIPE);
    assert_int_equal(output_write(&output, "line\n", 5), 0);
    assert_true(is_pending(SIGPIPE));
    assert_int_equal(sigtimedwait(&pipes, NULL, &(struct timespec){0}), SIGPIPE);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    close(ends[1]);
}

/* A block ends across the limit, and the next begins at it. */
static void a_file_ends_at_its_limit(void **state)
{
    struct output output;
    struct rlimit before, limit;
    static const char block[600];
    assert_int_equal(output_open(&output, path, APPEND), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 1000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    size_t first = output_write(&output, block, sizeof block);
    size_t second = output_write(&output, block, sizeof block);
    int why = errno;
    size_t third = output_write(&output, block, sizeof block);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(first, 600);
    assert_int_equal(second, 400);
    assert_int_equal(why, EFBIG);
    assert_int_equal(third, 0);
    assert_false(is_pending(SIGXFSZ));
    output_close(&output);
    assert_int_equal(size_of(path), 1000);
}

static void a_programs_file_in_its_place_is_left_alone(void **state)
{
    struct output output;
    assert_int_equal(output_open(&output, path, APPEND), 0);
    assert_int_equal(output_write(&output, "one\n", 4), 4);
    close(output.descriptor);
    assert_int_equal(output_write(&output, "two\n", 4), 0);
    assert_int_equal(errno, EBADF);
    FILE *own = tmpfile();
    assert_non_null(own);
    assert_int_equal(dup2(fileno(own), output.descriptor), output.descriptor);
    assert_int_equal(output_write(&output, "three\n", 6), 0);
    assert_int_equal(errno, EBADF);
    output_close(&output);
    assert_int_equal(fcntl(fileno(own), F_GETFD) & ~FD_CLOEXEC, 0);
    assert_int_equal(lseek(fileno(own), 0, SEEK_END), 0);
    fclose(own);
    assert_int_equal(size_of(path), 4);
}

static void what_cannot_be_opened_says_why(void **state)
{
    struct output output;
    assert_int_equal(output_open(&output, "/", APPEND), EISDIR);
    assert_int_equal(output_open(&output, "/nosuch/file", APPEND), ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_without_a_reader_is_an_error_only),
        cmocka_unit_test(no_reader_of_a_pipe_is_waited_for),
        cmocka_unit_test(a_pipe_takes_all_or_nothing),
        cmocka_unit_test(no_reader_of_a_socket_is_waited_for),
        cmocka_unit_test(no_reader_of_a_terminal_is_waited_for),
        cmocka_unit_test(the_programs_own_signal_stays),
        cmocka_unit_test_setup_teardown(a_file_ends_at_its_limit, begin, end),
        cmocka_unit_test_setup_teardown(a_programs_file_in_its_place_is_left_alone, begin, end),
        cmocka_unit_test(what_cannot_be_opened_says_why),
    };
    alarm((unsigned)patience(30)); /* for a write that waits */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
