/* The last lines of a process in their file. */
#include "diag/last_lines.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[32], path[64];

static void make_directory(unsigned slot)
{
    strcpy(directory, "/tmp/softverbs-last-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/" LAST_LINES_PREFIX "%d-%u", directory, (int)getpid(), slot);
    last_lines_keep(directory, slot);
}

static void remove_directory(void)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

/* The text of line `number`, or "". */
static const char *kept(uint64_t number)
{
    static struct last_line line;
    FILE *file = fopen(path, "r");
    memset(&line, 0, sizeof line);
    if (!file)
        return "";
    bool read = !fseek(file, (long)(sizeof(struct last_lines_head) + number % LAST_LINES * sizeof line), SEEK_SET) &&
                fread(&line, sizeof line, 1, file) == 1;
    fclose(file);
    return read && line.number == number ? line.text : "";
}

static unsigned descriptors(void)
{
    unsigned count = 0;
    DIR *stream = opendir("/proc/self/fd");
    assert_non_null(stream);
    while (readdir(stream))
        count++;
    closedir(stream);
    return count;
}

/* UCX's gtest fails where a descriptor is open behind a test that was not open before it. */
static void no_descriptor_stays_open(void **state)
{
    unsigned before = descriptors();
    make_directory(2);
    assert_int_equal(descriptors(), before);
    last_lines_add("first");
    assert_int_equal(descriptors(), before);
    assert_int_equal(unlink(path), 0);
    last_lines_add("second");
    assert_int_equal(descriptors(), before);
    assert_string_equal(kept(1), "first");
    assert_string_equal(kept(2), "second");
    remove_directory();
}

static void a_file_that_was_taken_away_is_made_again(void **state)
{
    make_directory(3);
    last_lines_add("third");
    assert_string_equal(kept(3), "third");
    assert_int_equal(unlink(path), 0);
    last_lines_add("fourth");
    assert_string_equal(kept(3), "third");
    assert_string_equal(kept(4), "fourth");
    remove_directory();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_descriptor_stays_open),
        cmocka_unit_test(a_file_that_was_taken_away_is_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
