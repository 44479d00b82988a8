#include "diag/log_room.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/nanos.h"
#include "base/testing/patience.h"

enum { PIPE = 1 << 20, FILLED = 'x' }; /* more than a pipe holds */

/* A pipe whose writer blocks, as a program's standard error does, and what was read from it. */
static int ends[2];
static struct output output;
static char found[PIPE];
static size_t found_length;

static int begin(void **state)
{
    if (pipe(ends))
        return -1;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    output = (struct output){.descriptor = ends[1]};
    found_length = 0;
    memset(found, 0, sizeof found);
    return 0;
}

static int end(void **state)
{
    close(ends[0]);
    close(ends[1]);
    log_room_settle(&output); /* nothing reads what is kept */
    return log_room_waits() ? -1 : 0;
}

static void fill(void)
{
    const char filled = FILLED;
    while (output_write(&output, &filled, 1) == 1)
        ;
}

/* All that is in the pipe, but for what filled it. */
static void drain(void)
{
    char bytes[4096];
    for (ssize_t length; (length = read(ends[0], bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < length; i++)
            if (bytes[i] != FILLED && found_length < sizeof found - 1)
                found[found_length++] = bytes[i];
}

static void write_line(const char *line)
{
    log_room_write(&output, line, strlen(line));
}

static void a_line_for_which_there_is_no_room_is_kept(void **state)
{
    fill();
    write_line("one\n");
    write_line("two\n");
    assert_true(log_room_waits());
    drain();
    assert_string_equal(found, "");
    write_line("three\n"); /* a later line overtakes no kept one */
    assert_false(log_room_waits());
    drain();
    assert_string_equal(found, "one\ntwo\nthree\n");
}

static void what_is_kept_is_written_when_it_is_looked_at(void **state)
{
    fill();
    write_line("one\n");
    log_room_settle(&output);
    assert_true(log_room_waits());
    drain();
    log_room_settle(&output);
    drain();
    assert_string_equal(found, "one\n");
}

/* The numbers of the lines go up; where some are missing, a line says how many. */
static void lines_that_find_no_room_are_counted(void **state)
{
    enum { LINES = 20000 };
    char line[32];
    fill();
    for (int i = 0; i < LINES; i++) {
        snprintf(line, sizeof line, "%d\n", i);
        write_line(line);
    }
    for (int i = 0; i < 100 && log_room_waits(); i++) {
        drain();
        log_room_settle(&output);
    }
    drain();
    write_line("20000\n");
    drain();
    int next = 0;
    unsigned lost = 0, told = 0;
    for (char *each = strtok(found, "\n"); each; each = strtok(NULL, "\n")) {
        char *words = strstr(each, "] ");
        if (words) {
            assert_int_equal(sscanf(words, "] %u lines were lost here", &told), 1);
            lost += told;
            next += (int)told;
        } else {
            assert_int_equal(atoi(each), next++);
        }
    }
    assert_int_equal(next, LINES + 1);
    assert_in_range(lost, 1, LINES - 1);
}

static void nothing_is_kept_for_a_reader_that_is_gone(void **state)
{
    fill();
    write_line("one\n");
    close(ends[0]);
    write_line("two\n");
    assert_false(log_room_waits());
}

static void the_end_waits_for_a_slow_reader(void **state)
{
    enum { LINES = 3000 };
    char line[64];
    fill();
    for (int i = 0; i < LINES; i++) {
        snprintf(line, sizeof line, "line %d\n", i);
        write_line(line);
    }
    pid_t reader = fork();
    if (!reader) { /* it takes a little now and then */
        char bytes[4096];
        unsigned lines = 0;
        close(ends[1]);
        fcntl(ends[0], F_SETFL, 0);
        for (ssize_t length; (length = read(ends[0], bytes, sizeof bytes)) > 0;) {
            for (ssize_t i = 0; i < length; i++)
                lines += bytes[i] == '\n';
            nanosleep(&(struct timespec){.tv_nsec = NANOS_MILLISECOND}, NULL); /* slow */
        }
        _exit(lines == LINES ? 0 : 1);
    }
    log_room_end(&output);
    assert_false(log_room_waits());
    close(ends[1]);
    int status;
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
}

/* The parent writes them itself. */
static void the_child_of_a_fork_has_no_lines_of_its_parents(void **state)
{
    fill();
    write_line("one\n");
    pid_t child = fork();
    if (!child) {
        drain();
        write_line("two\n");
        drain();
        _exit(strcmp(found, "two\n") ? 1 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    log_room_settle(&output);
    drain();
    assert_string_equal(found, "one\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_for_which_there_is_no_room_is_kept, begin, end),
        cmocka_unit_test_setup_teardown(what_is_kept_is_written_when_it_is_looked_at, begin, end),
        cmocka_unit_test_setup_teardown(lines_that_find_no_room_are_counted, begin, end),
        cmocka_unit_test_setup_teardown(nothing_is_kept_for_a_reader_that_is_gone, begin, end),
        cmocka_unit_test_setup_teardown(the_end_waits_for_a_slow_reader, begin, end),
        cmocka_unit_test_setup_teardown(the_child_of_a_fork_has_no_lines_of_its_parents, begin, end),
    };
    alarm((unsigned)patience(60)); /* for a write that waits */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
