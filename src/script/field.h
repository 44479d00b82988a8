/* The fields that the action `set` changes: in answers of queries, and in packets. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text/suggest.h"
#include "script/rule.h"

struct script_field {
    enum script_call call;
    const char *word;
    size_t offset, size; /* in the call's answer */
    uint64_t mask;       /* 0: all of it */
};

/* The first field of this word that one of the calls has; or NULL. */
const struct script_field *field_find(const bool calls[SCRIPT_EVENTS], const char *word);

/* field_suggest tries the words of all fields that the calls have, field_suggest_value the names of a field's values.
 */
void field_suggest(const bool calls[SCRIPT_EVENTS], struct suggestion *);
void field_suggest_value(const char *word, struct suggestion *);

/* Returns true if the call has all fields that the rule sets. */
bool field_fits(const struct script_rule *, enum script_call);

/* Reads a value: its name, a number or an address, as the field has it. False: it is not valid, or too large. */
bool field_read(const struct script_field *, const char *value, struct script_change *);

/* Sets the field in the answer of the call, which has `size` bytes. An answer without the field is not changed. */
void field_change(const struct script_change *, enum script_call, void *answer, size_t size);
