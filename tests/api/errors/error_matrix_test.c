/* The rows of error_matrix.def. */
#include <stdio.h>

#include "matrix.h"

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
    return harness_main(argc, argv, all);
}
