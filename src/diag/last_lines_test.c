/* The last lines of a process in their file. */
#include "diag/last_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/softverbs-last-XXXXXX", path[64];

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

static void a_file_that_was_taken_away_is_made_again(void **state)
{
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/" LAST_LINES_PREFIX "%d-3", directory, (int)getpid());
    last_lines_keep(directory, 3);
    last_lines_add("first");
    assert_string_equal(kept(1), "first");
    assert_int_equal(unlink(path), 0);
    last_lines_add("second");
    assert_string_equal(kept(1), "first");
    assert_string_equal(kept(2), "second");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_file_that_was_taken_away_is_made_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
