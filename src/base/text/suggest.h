/* The known name that is most like an unknown one, to suggest it to the user. Pure. */
#pragma once

#include <stddef.h>

/* A name that the user wrote, and the best candidate until now. */
struct suggestion {
    const char *name;  /* as the user wrote it */
    const char *meant; /* the best candidate; NULL: no candidate is like the name */
    size_t least;      /* a better candidate has a distance below this */
    size_t rest;       /* where one name contains the other: the difference of their lengths */
};

/* The edit distance: letters to change, add or leave out until one name is the other. Capital letters equal small ones,
 * and _ equals -. */
size_t suggest_distance(const char *from, const char *to);

/* suggest_try is called for each known name. The best candidate is the one at the least edit distance of at most 2 (1
 * for names of up to 3 letters); without such, one that contains the name, if that has 3 letters or more, or one of 4
 * letters or more that the name contains. */
struct suggestion suggest_begin(const char *name);
void suggest_try(struct suggestion *, const char *candidate);
