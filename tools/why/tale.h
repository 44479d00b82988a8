/* What the sentences of a story are made of. */
#ifndef TOOLS_WHY_TALE_H
#define TOOLS_WHY_TALE_H

#include <jansson.h>

enum { TALE_NAME = 64 };

/* Both ends of a connection, all processes where they are known, and the list that is being written. */
struct tale {
    const json_t *own, *peer, *processes;
    json_t *list;
};

/* Of a member that may be missing: 0 or "". */
json_int_t tale_number(const json_t *object, const char *key);
const char *tale_text(const json_t *object, const char *key);

/* Adds a sentence, of 1023 bytes at most, without what a terminal would take for more than text. */
void tale_say(struct tale *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "client (4711)". Returns `name`. */
const char *tale_name(const json_t *end, char name[TALE_NAME]);

#endif
