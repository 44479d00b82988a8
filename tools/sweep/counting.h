/* The calls of a run, counted by the places of the program that make them (script/places.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "script/places.h"

struct counting {
    struct places *table;
    int file;
    char path[64]; /* for the action `places`, in all processes that see this one */
};

/* False and errno: no memory. The table lives as long as the command. */
bool counting_begin(struct counting *);

/* Forgets all calls; no process counts. */
void counting_clear(struct counting *);

/* How many work requests and receives the processes posted, together. */
unsigned long long counting_posted(const struct counting *);
