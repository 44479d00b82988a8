/* The likely meaning of an unknown word in a script: a sentence behind the error. Pure. */
#ifndef SCRIPT_MEANT_H
#define SCRIPT_MEANT_H

#include "script/reader.h"

/* Each returns text, which may be "". */

/* The word stands where a condition, an action or, in the short form, either of them must stand, and is none. */
const char *meant_condition(const char *word, char text[READER_MEANT]);
const char *meant_action(const char *word, char text[READER_MEANT]);
const char *meant_short_item(const char *word, char text[READER_MEANT]);

/* The word stands where the name of a call or a happening must stand, and is none. */
const char *meant_call(const char *word, char text[READER_MEANT]);

#endif
