/* Finds the programs that listen, for an identifier that has asked for a connection. */
#pragma once

#include "why/explanation.h"

/* A search through all processes. The caller sets the first two members; `known` has the listener that was found. */
struct listeners {
    const struct seen *seen; /* NULL: no process is known */
    const struct facts_identifier *asker;
    size_t process, identifier; /* indices of the next identifier */
    char name[EXPLANATION_NAME];
    struct known known;
};

/* Finds the next identifier for which a diagnosis of the group holds; DIAGNOSIS_NOTHING after the last. */
enum diagnosis listeners_next(struct listeners *, enum diagnosis_group);

/* Adds a sentence for each of the first three listeners that listeners_next finds. False: it finds no listener. */
bool listeners_tell(struct explanation *, const struct facts_identifier *asker, enum diagnosis_group);
