/* Layers for tests, which note every call by name and object, and pass it on. */
#ifndef ABI_TESTING_NOTES_H
#define ABI_TESTING_NOTES_H

#include "calls/calls.h"
#include "calls/subject.h"

struct note {
    const char *layer, *title;
    struct calls_subject subject;
    unsigned times; /* that it was made, one after the other */
};

enum { NOTES_MOST = 1 << 18 }; /* later ones are lost, and the count is one more */

extern struct note notes[NOTES_MOST];

/* From the highest place to the lowest. */
extern struct calls_layer notes_high, notes_middle, notes_low;

/* How many there are, by all layers together. */
unsigned notes_count(void);
void notes_clear(void);

/* Thread-safe, for the layers. */
void notes_add(const struct calls_layer *, const char *title, struct calls_subject);

/* A line for each: layer, call, kind and number of the object, times. False: the file can't be written, or notes were
 * lost. */
bool notes_write(const char *path);

#endif
