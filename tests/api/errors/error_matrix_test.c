/* The rows of error_matrix.def, and the page that is made from them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "matrix.h"

static void the_page_of_errors_says_what_the_table_says(const void *row)
{
    static char committed[1 << 18];
    FILE *file = fopen(ERRORS_PAGE, "r");
    EXPECT_TRUE(file);
    size_t length = fread(committed, 1, sizeof committed - 1, file);
    fclose(file);
    committed[length] = 0;
    char *page = matrix_page();
    bool same = !strcmp(page, committed);
    free(page);
    if (!same)
        harness_fail(__FILE__, __LINE__, "make it anew: api_error_matrix --page >docs/reference/errors.md");
}

static void no_row_stands_twice(const void *argument)
{
    for (size_t i = 0; i < row_count; i++)
        for (size_t other = 0; other < i; other++)
            if (rows[i].type == rows[other].type && rows[i].operation == rows[other].operation &&
                rows[i].fault == rows[other].fault)
                harness_fail(__FILE__, __LINE__, "row %zu is row %zu again", i, other);
}

static void all(void)
{
    char title[160];
    if (harness_link() == LINK_NONE) {
        CASE(the_page_of_errors_says_what_the_table_says);
        CASE(no_row_stands_twice);
        return;
    }
    for (size_t i = 0; i < row_count; i++) {
        if (!harness_promises(rows[i].type))
            continue;
        snprintf(title, sizeof title, "%s %s: %s", name_of_type(rows[i].type), name_of_operation(rows[i].operation),
                 faults[rows[i].fault].sentence);
        harness_run(title, row_play, &rows[i]);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--page")) {
        char *page = matrix_page();
        fputs(page, stdout);
        free(page);
        return 0;
    }
    return harness_main(argc, argv, all);
}
