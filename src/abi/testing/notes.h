/* Layers for tests: each notes every call by name and object, and passes it on. */
#pragma once

#include "calls/calls.h"
#include "calls/subject.h"

struct note {
    const char *layer, *title;
    struct calls_subject subject;
    unsigned times; /* consecutive calls of this name and object */
};

enum { NOTES_MOST = 1 << 18 }; /* later calls are lost, and the count is NOTES_MOST + 1 */

extern struct note notes[NOTES_MOST];

/* The three layers, from the highest place to the lowest. */
extern struct calls_layer notes_high, notes_middle, notes_low;

/* The number of notes of all layers. */
unsigned notes_count(void);
void notes_clear(void);

/* Adds a note, for the layers. Thread-safe. */
void notes_add(const struct calls_layer *, const char *title, struct calls_subject);

/* Writes a line for each note: layer, call, kind and number of the object, times. False: the file can't be written, or
 * notes were lost. */
bool notes_write(const char *path);
