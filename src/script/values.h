/* The conditions and actions of rules, each with how its value is read. The list is script/words.def. */
#pragma once

#include "script/reader.h"

struct value_word {
    const char *word, *short_word;
    bool (*read)(struct reader *, const char *stops);
    unsigned what; /* enum script_kind */
};

/* The condition or action of this name, in the short form if `is_short`; or NULL. */
const struct value_word *value_condition(const char *name, bool is_short);
const struct value_word *value_action(const char *name, bool is_short);

/* Tries the words of the actions or conditions. */
void value_suggest(struct suggestion *, bool actions, bool is_short);
