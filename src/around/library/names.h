/* Programs that look functions up by dlsym(3) in a library's handle: the library's table of symbols leads to the
 * functions in front of it. The default versions alone do; a program that asks for IBVERBS_1.0 gets the library's. */
#pragma once

#include <stdbool.h>

struct names_function {
    const char *name;      /* NULL: the end of a list */
    void *ours, **library; /* `library`: gets the library's own, unless it is NULL */
};

/* Leads the names of a library that the process has, at most once for each. False: the process does not have it. Writes
 * a line to the log where the table can't be changed. errno stays. */
bool names_lead(const char *library, const struct names_function *functions);
