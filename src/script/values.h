/* The conditions and actions of rules, each with the function that reads its value. The list is script/words.def. */
#pragma once

#include "script/reader.h"

struct value_word {
    const char *word, *short_word;
    bool (*read)(struct reader *, const char *stops);
    unsigned what; /* enum script_kind: the subjects that it is for */
};

/* The condition or action of this name, in the short form if `is_short`; or NULL. */
const struct value_word *value_condition(const char *name, bool is_short);
const struct value_word *value_action(const char *name, bool is_short);

/* Tries the words of all actions, or of all conditions. */
void value_suggest(struct suggestion *, bool actions, bool is_short);
