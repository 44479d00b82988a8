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
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

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

static void *read_later(void *argument)
{
    static char sink[1 << 17];
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    for (ssize_t length = 1; length > 0;)
        length = read(*(int *)argument, sink, sizeof sink);
    return NULL;
}

/* Its reader is slow for a moment; then there is none that reads. */
static void a_full_pipe_gets_some_time(void **state)
{
    static char block[1 << 17]; /* twice what a pipe holds */
    int ends[2];
    pthread_t reader;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    struct output output = {.descriptor = ends[1]};
    assert_in_range(output_write(&output, block, sizeof block), 1, sizeof block - 1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(fcntl(ends[0], F_SETFL, 0), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_later, &ends[0]), 0);
    assert_int_equal(output_write(&output, block, sizeof block), sizeof block);
    close(ends[1]);
    assert_int_equal(pthread_join(reader, NULL), 0);
    close(ends[0]);
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
        cmocka_unit_test(a_full_pipe_gets_some_time),
        cmocka_unit_test(the_programs_own_signal_stays),
        cmocka_unit_test_setup_teardown(a_file_ends_at_its_limit, begin, end),
        cmocka_unit_test_setup_teardown(a_programs_file_in_its_place_is_left_alone, begin, end),
        cmocka_unit_test(what_cannot_be_opened_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
