/* The output of the programs of a run. It goes to files of the run, as a file never makes a program wait, and where a
 * stream leads is what programs see (isatty(3)); this command writes it on. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { STREAMS = 2 };

struct streams {
    int files[STREAMS];    /* standard output and error */
    long written[STREAMS]; /* bytes of each that were written on, and a hash of them */
    uint64_t hash[STREAMS];
};

/* False: errno. */
bool streams_make(struct streams *);

/* In a program's process: makes the files its standard output and error. */
void streams_take(const struct streams *);

/* Writes on what the programs have written since. */
void streams_pass_on(struct streams *);
