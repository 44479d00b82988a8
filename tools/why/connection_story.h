/* softverbs why --id: the story of an identifier of librdmacm and its connection, from both ends where both are known.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* The identifiers that are wanted, and the places to look for them. */
struct connection_question {
    const char *directory;   /* where processes meet; NULL: in `from` alone */
    const char *const *from; /* files with stories (SOFTVERBS_STORY), to a NULL; NULL: no file */
    unsigned long number;    /* of the identifier */
    int pid;                 /* 0: of any process */
    bool last;               /* only what processes have left */
    bool all;                /* all identifiers of the files, or of what processes have left; `number` is ignored */
};

/* Returns an array with an object for each connection: its "ends" (the wanted number first), the "sentences", and the
 * "reason" that explains most (0: no reason). The caller releases the array. NULL, after a message: `from` can't be
 * read. Nothing that was found is trusted. */
json_t *connection_story_collect(const struct connection_question *);
