/* Lines of findings are JSON, whatever bytes the names of the program hold. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "check/findings/finding_file.h"

static void a_name_that_is_no_utf8_becomes_a_string(void **state)
{
    static char name[] = "a\xff\"b";
    char path[] = "/tmp/softverbs-finding-XXXXXX", line[512] = "";
    struct finding finding = {.count = 2, .id = 1};
    int file = mkstemp(path);
    assert_true(file >= 0);
    setenv("SOFTVERBS_CHECK_REPORT", path, 1);
    program_invocation_short_name = name;
    finding_file_count(&finding);
    assert_true(read(file, line, sizeof line - 1) > 0);
    assert_non_null(strstr(line, "{\"program\": \"a\\ufffd\\u0022b\", \"pid\": "));
    close(file);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_name_that_is_no_utf8_becomes_a_string)};
    return cmocka_run_group_tests_name("file of findings", tests, NULL, NULL);
}
