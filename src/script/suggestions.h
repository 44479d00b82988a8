/* The likely meaning of an unknown word in a script: a sentence after the error. Pure. */
#pragma once

#include "script/reader.h"

/* Each returns text, which may be "". */

/* The word is not a condition, an action or, in the short form, either, where one must be. */
const char *suggest_condition(const char *word, char text[READER_MEANT]);
const char *suggest_action(const char *word, char text[READER_MEANT]);
const char *suggest_short_item(const char *word, char text[READER_MEANT]);

/* The word is not the name of a call or a happening, where one must be. */
const char *suggest_call(const char *word, char text[READER_MEANT]);
