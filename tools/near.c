#include "near.h"

#include <string.h>

/* The last row of the table that is usual for it. */
size_t near_distance(const char *from, const char *to)
{
    enum { LONGEST = 32 };
    size_t row[LONGEST + 1], length = strlen(to);
    if (length > LONGEST)
        return LONGEST;
    for (size_t i = 0; i <= length; i++)
        row[i] = i;
    for (; *from; from++) {
        size_t left_above = row[0]++;
        for (size_t i = 1; i <= length; i++) {
            size_t above = row[i], best = left_above + (*from != to[i - 1]);
            best = above + 1 < best ? above + 1 : best;
            row[i] = row[i - 1] + 1 < best ? row[i - 1] + 1 : best;
            left_above = above;
        }
    }
    return row[length];
}
