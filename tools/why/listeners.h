/* The programs that listen, for an identifier that has asked for a connection. */
#pragma once

#include "why/explanation.h"

/* A search through all processes. The caller sets the first two members; `known` has the listener that was found. */
struct listeners {
    const struct seen *seen; /* NULL: no process is known */
    const struct facts_identifier *asker;
    size_t process, identifier; /* the next one */
    char name[EXPLANATION_NAME];
    struct known known;
};

/* Finds the next identifier that a diagnosis of the group holds for. */
enum diagnosis listeners_next(struct listeners *, enum diagnosis_group);

/* Adds the sentences of the first three. Returns whether there is one. */
bool listeners_tell(struct explanation *, const struct facts_identifier *asker, enum diagnosis_group);
