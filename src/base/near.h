/* Names that are like others, as the likely meaning of an unknown one. Pure. */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#include <stddef.h>

/* The name that is most like the one that was written, among those that were tried. */
struct near {
    const char *name;  /* as it was written */
    const char *meant; /* NULL: no candidate is like it */
    size_t least;      /* names of this distance or more are not like it */
    size_t rest;       /* letters that the one has and the other, which is a part of it, has not */
};

/* Letters to change, add or leave out until one name is the other; capital letters are as good as small ones, and
 * _ as -. */
size_t near_distance(const char *from, const char *to);

/* Like the name are those that differ in two letters, of names up to three letters in one; and, without such, those of
 * which it is a part of three letters or more, or which are a part of it of four letters or more. */
struct near near_begin(const char *name);
void near_try(struct near *, const char *candidate);

#endif
