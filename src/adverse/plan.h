/* The list of SOFTVERBS_ADVERSE: `seed=7,only=late-write,scale=10%`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A behaviour's bit in `on` has this number. */
enum adverse {
#define ADVERSE(number, name, ...) ADVERSE_##name,
#include "adverse/adverse.def"
    ADVERSE_BEHAVIOURS
};

struct adverse_plan {
    uint64_t seed;
    uint32_t on;    /* a bit for each behaviour */
    uint32_t scale; /* per cent of all times */
};

extern const char adverse_example[];

/* Reads a list. False: it is invalid, and `why` is a sentence. Items, with commas between: seed=N; only=BEHAVIOUR, once
 * or several times, which leaves no other behaviours; with=BEHAVIOUR and without=BEHAVIOUR, which change what holds
 * otherwise; scale=N%, from 1% to 1000%. A BEHAVIOUR is its word or its number. An empty list is seed=1. */
bool adverse_parse(const char *text, struct adverse_plan *, char *why, size_t why_size);

/* Returns true if the behaviour is on with this list. False for NULL, an empty text and an invalid list. */
bool adverse_list_shows(const char *text, enum adverse);

/* Reads the value of SOFTVERBS_SCHEDULE, "seed=7". False: it is invalid, and `why` is a sentence. */
bool adverse_parse_schedule(const char *text, uint64_t *seed, char *why, size_t why_size);
