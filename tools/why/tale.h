/* The parts of a story's sentences. */
#ifndef TOOLS_WHY_TALE_H
#define TOOLS_WHY_TALE_H

#include <jansson.h>
#include <stdbool.h>

enum { TALE_NAME = 64 };

/* Both ends of a connection, all processes where they are known, and the list that is being written. */
struct tale {
    const json_t *own, *peer, *processes;
    const json_t *stranger; /* what has the peer's number and is connected with another; NULL */
    json_t *list;
};

/* Of a member that may be missing: 0 or "". */
json_int_t tale_number(const json_t *object, const char *key);
const char *tale_text(const json_t *object, const char *key);

/* Returns whether the member is this word. */
bool tale_has(const json_t *object, const char *key, const char *word);

/* The reason of its first error; 0: it had none. */
unsigned tale_reason(const json_t *end);

/* The last event of this name among those of an end; NULL: it is no more, or never was, among them. */
const json_t *tale_event(const json_t *end, const char *event);

/* The process with this number, from reports_collect; NULL: none is known. */
const json_t *tale_process(const struct tale *, json_int_t pid);

/* "12:01:02.345 ", or "" of a time that is not known. Returns `text`. */
const char *tale_time(json_int_t nanoseconds, char text[TALE_NAME]);

const char *tale_plural(json_int_t count);

/* Adds a sentence, of 1023 bytes at most, without what a terminal would take for more than text. */
void tale_say(struct tale *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "client (4711)". Returns `name`. */
const char *tale_name(const json_t *end, char name[TALE_NAME]);

#endif
