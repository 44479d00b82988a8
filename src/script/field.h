/* The fields that the action `set` changes: those of answers of queries, and of packets. Pure. */
#ifndef SCRIPT_FIELD_H
#define SCRIPT_FIELD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/near.h"
#include "script/rule.h"

struct script_field {
    enum script_call call;
    const char *word;
    size_t offset, size; /* in what the call answers */
    uint64_t mask;       /* 0: all of it */
};

/* The first field of this word that one of the calls has; NULL: none. */
const struct script_field *field_find(const bool calls[SCRIPT_EVENTS], const char *word);

/* Tries the words of all fields that the calls have, and the names that a field of this word has for values. */
void field_near(const bool calls[SCRIPT_EVENTS], struct near *);
void field_near_value(const char *word, struct near *);

/* Returns true if the call has all fields that the rule sets. */
bool field_fits(const struct script_rule *, enum script_call);

/* The value by its name, a number, or an address, as the field is. False: it is none, or too large. */
bool field_read(const struct script_field *, const char *value, struct script_change *);

/* Gives the field of the call's answer, of `size` bytes, its value. An answer without the field stays. */
void field_change(const struct script_change *, enum script_call, void *answer, size_t size);

#endif
