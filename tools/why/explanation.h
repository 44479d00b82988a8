/* The sentences of a story while they are collected. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "diagnose/diagnose.h"
#include "why/story_end.h"

enum { EXPLANATION_NAME = 64 };

/* The two ends of a connection, all processes where they are known, and the list that is being written. */
struct explanation {
    const struct story_end *own, *peer;
    const struct story_end *stranger; /* has the peer's number and is connected with another end; NULL: not known */
    const struct seen *processes;     /* NULL: not known */
    json_t *list;
};

/* The process with this number; NULL: not known. */
const struct seen_process *explanation_process(const struct explanation *, uint64_t pid);

/* "12:01:02.345 ", or "" of a time that is not known. Returns `text`. */
const char *explanation_time(json_int_t nanoseconds, char text[EXPLANATION_NAME]);

/* Adds a sentence, of 1023 bytes at most, without what a terminal would take for more than text. */
void explanation_say(struct explanation *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The facts of an end and of the other one; an end is NULL where it is not known. */
struct known explanation_known(const struct story_end *end, const struct story_end *other);

/* Adds the sentence of the diagnosis, if it is not DIAGNOSIS_NOTHING, after the time `when`; 0: without a time. */
void explanation_diagnose(struct explanation *, json_int_t when, enum diagnosis, const struct known *);

/* Adds the sentence of the first diagnosis of the group that holds. False: no diagnosis holds. */
bool explanation_first(struct explanation *, enum diagnosis_group, const struct known *);

/* Adds the sentence of each diagnosis of the group that holds. */
void explanation_all(struct explanation *, enum diagnosis_group, const struct known *);

/* Reads the i-th record of an array of JSON, for struct known. False: the array is shorter. */
bool explanation_read(const void *records, size_t i, struct known_record *);

/* "client (4711)". Returns `name`. */
const char *explanation_name_process(const char *program, uint64_t pid, char name[EXPLANATION_NAME]);

/* Writes the cause of the end's error, with numbers where they are known. `sent`: bytes of the message, as its sender
 * says; 0: not known. Returns `text`. */
const char *explanation_cause(const struct story_end *, uint64_t sent, char text[DIAGNOSE_ROOM]);

/* Adds that the end refused a request, and what became of its receive. `sender`: the end that sent it; NULL: not
 * known. */
void explanation_refusal(struct explanation *, const struct story_end *, const struct story_end *sender);

/* Returns whether work of this operation names memory of the peer. */
bool explanation_names_memory(const char *opcode);

/* Adds that `softverbs explain` knows more of the reason; 0: nothing failed. */
void explanation_reason(struct explanation *, unsigned reason);
