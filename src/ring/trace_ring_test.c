/* Lines arrive in their order and whole; lines without room count as lost; no side trusts the other or waits for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring/trace_ring.h"

enum { WRITERS = 4, LINES = 20000 };

static struct trace_reader reader;

static int create(void **state)
{
    return trace_ring_create(&reader) || trace_ring_open(reader.path) ? -1 : 0;
}

static int destroy(void **state)
{
    trace_ring_close();
    trace_ring_destroy(&reader);
    return 0;
}

static struct trace_line line_of(const char *text)
{
    struct trace_line line = {.trace = trace_ring_now(), .length = (uint32_t)strlen(text)};
    memcpy(line.text, text, line.length);
    return line;
}

static void write_number(unsigned number)
{
    char text[32];
    snprintf(text, sizeof text, "%u", number);
    struct trace_line line = line_of(text);
    line.further = number;
    trace_ring_write(&line);
}

static void lines_come_in_their_order(void **state)
{
    struct trace_slot line;
    assert_false(trace_ring_read(&reader, &line));
    for (unsigned i = 0; i < 3 * TRACE_SLOTS; i++) {
        write_number(i);
        write_number(i + 1);
        for (unsigned j = 0; j < 2; j++) {
            assert_true(trace_ring_read(&reader, &line));
            assert_int_equal(line.further, i + j);
            assert_int_equal(line.process, getpid());
        }
    }
    assert_false(trace_ring_read(&reader, &line));
    assert_int_equal(trace_ring_lost(&reader), 0);
}

static void what_has_no_room_is_counted(void **state)
{
    struct trace_slot line;
    unsigned count = 0;
    for (unsigned i = 0; i < TRACE_SLOTS + 10; i++)
        write_number(i);
    assert_int_equal(trace_ring_lost(&reader), 10);
    while (trace_ring_read(&reader, &line))
        assert_int_equal(line.further, count++);
    assert_int_equal(count, TRACE_SLOTS);
    write_number(7);
    assert_true(trace_ring_read(&reader, &line));
    assert_int_equal(line.further, 7);
}

static void room_is_seen_before_a_line_is_made(void **state)
{
    struct trace_slot line;
    for (unsigned i = 0; i < TRACE_SLOTS; i++) {
        assert_true(trace_ring_has_room());
        write_number(i);
    }
    assert_int_equal(trace_ring_lost(&reader), 0);
    assert_false(trace_ring_has_room());
    assert_int_equal(trace_ring_lost(&reader), 1);
    assert_true(trace_ring_read(&reader, &line));
    assert_true(trace_ring_has_room());
    trace_ring_close();
    assert_false(trace_ring_has_room());
    assert_int_equal(trace_ring_lost(&reader), 1);
}

static void *write_many(void *number)
{
    for (unsigned i = 0; i < LINES; i++)
        write_number((unsigned)(uintptr_t)number * LINES + i);
    return NULL;
}

static void threads_write_beside_each_other(void **state)
{
    pthread_t threads[WRITERS];
    unsigned next[WRITERS] = {0};
    uint64_t read = 0;
    for (uintptr_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, (void *)i), 0);
    while (read + trace_ring_lost(&reader) < WRITERS * LINES) {
        struct trace_slot line;
        char text[32];
        if (!trace_ring_read(&reader, &line))
            continue;
        unsigned writer = line.further / LINES;
        assert_in_range(writer, 0, WRITERS - 1);
        assert_true(line.further % LINES >= next[writer]);
        next[writer] = line.further % LINES + 1;
        snprintf(text, sizeof text, "%u", line.further);
        assert_int_equal(line.length, strlen(text));
        assert_memory_equal(line.text, text, line.length);
        read++;
    }
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    assert_true(read > 0);
}

/* A writer has taken a slot and was stopped, as by a debugger. */
static void a_writer_that_stops_holds_up_nothing(void **state)
{
    struct trace_slot line;
    atomic_fetch_add(&reader.ring->next, 1);
    write_number(1);
    assert_true(trace_ring_read(&reader, &line));
    assert_int_equal(line.further, 1);
    assert_int_equal(trace_ring_lost(&reader), 1);
    for (unsigned i = 0; i < 2 * TRACE_SLOTS; i++) { /* its slot, too, is used again */
        write_number(i);
        assert_true(trace_ring_read(&reader, &line));
        assert_int_equal(line.further, i);
    }
}

static void a_child_writes_under_its_own_number(void **state)
{
    struct trace_slot line;
    write_number(1);
    pid_t child = fork();
    if (!child) {
        write_number(2);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(trace_ring_read(&reader, &line) && line.process == getpid());
    assert_true(trace_ring_read(&reader, &line));
    assert_int_equal(line.process, child);
    assert_int_equal(line.thread, child);
}

static void a_line_of_an_earlier_trace_is_not_written(void **state)
{
    struct trace_slot line;
    struct trace_line late = line_of("late");
    assert_null(trace_ring_open(reader.path));
    trace_ring_write(&late);
    assert_false(trace_ring_read(&reader, &line));
    trace_ring_close();
    assert_int_equal(trace_ring_now(), 0);
    late = line_of("later");
    trace_ring_write(&late);
    assert_false(trace_ring_read(&reader, &line));
}

static void nothing_is_written_to_a_reader_that_has_gone(void **state)
{
    struct trace_reader gone;
    assert_int_equal(trace_ring_create(&gone), 0);
    assert_null(trace_ring_open(gone.path));
    trace_ring_destroy(&gone);
    for (unsigned i = 0; i <= TRACE_SLOTS; i++)
        write_number(i);
    assert_int_equal(trace_ring_now(), 0);
}

static void characters_that_steer_a_terminal_are_found_everywhere(void **state)
{
    enum { LENGTH = 40 };
    struct trace_slot line;
    for (unsigned at = 0; at < LENGTH; at++) {
        char text[LENGTH + 1];
        memset(text, '\xff', LENGTH);
        text[LENGTH] = 0;
        text[LENGTH - 1 - at] = TRACE_NEXT;
        text[at] = '\033';
        assert_int_equal(trace_ring_printable(text, LENGTH), at < LENGTH - 1 - at ? at : LENGTH - 1 - at);
        struct trace_line written = line_of(text);
        trace_ring_write(&written);
        assert_true(trace_ring_read(&reader, &line));
        for (unsigned i = 0; i < LENGTH; i++)
            assert_int_equal(line.text[i], i == at ? '?' : text[i]);
    }
}

static void a_reader_believes_no_length_and_no_character(void **state)
{
    struct trace_slot line;
    write_number(1);
    reader.ring->slot[0].length = UINT32_MAX;
    reader.ring->slot[0].text[0] = '\033';
    assert_true(trace_ring_read(&reader, &line));
    assert_int_equal(line.length, TRACE_TEXT);
    assert_int_equal(line.text[0], '?');
}

static void no_other_file_is_taken(void **state)
{
    static const char *const paths[] = {"/dev/null", "/proc/self/exe", "/nowhere"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        assert_non_null(trace_ring_open(paths[i]));
    reader.ring->version++;
    assert_non_null(strstr(trace_ring_open(reader.path), "another version"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_come_in_their_order, create, destroy),
        cmocka_unit_test_setup_teardown(what_has_no_room_is_counted, create, destroy),
        cmocka_unit_test_setup_teardown(room_is_seen_before_a_line_is_made, create, destroy),
        cmocka_unit_test_setup_teardown(threads_write_beside_each_other, create, destroy),
        cmocka_unit_test_setup_teardown(a_writer_that_stops_holds_up_nothing, create, destroy),
        cmocka_unit_test_setup_teardown(a_child_writes_under_its_own_number, create, destroy),
        cmocka_unit_test_setup_teardown(a_line_of_an_earlier_trace_is_not_written, create, destroy),
        cmocka_unit_test_setup_teardown(nothing_is_written_to_a_reader_that_has_gone, create, destroy),
        cmocka_unit_test_setup_teardown(characters_that_steer_a_terminal_are_found_everywhere, create, destroy),
        cmocka_unit_test_setup_teardown(a_reader_believes_no_length_and_no_character, create, destroy),
        cmocka_unit_test_setup_teardown(no_other_file_is_taken, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
