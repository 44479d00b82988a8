/* Names of numbers in scripts, by their kind: IBV_WR_RDMA_WRITE and RDMA_WRITE, SIGKILL and KILL, ENOMEM, ... The
 * list is script/words.def. Pure. */
#pragma once

#include <stdbool.h>

#include "base/text/suggest.h"

enum names { NAMES_OPCODES, NAMES_SIGNALS, NAMES_ERRORS, NAMES_STATUSES, NAMES_FORGED, NAMES_OBJECTS, NAMES_KINDS };

/* The words for the kind of names, such as "errno". */
const char *names_kind(enum names);

/* The number for this word, with or without the prefix that the headers have. False: the word is unknown. */
bool names_number(enum names, const char *word, int *number);

/* The word without the prefix that the headers have. */
const char *names_after_prefix(enum names, const char *word);

/* The name of a number; NULL: it has no name. */
const char *names_name(enum names, int number);

/* The first name, as an example. */
const char *names_example(enum names);

/* Tries all names of this kind. */
void names_suggest(enum names, struct suggestion *);
