/* The likely meaning of an unknown word in a script: a sentence after the error. Pure. */
#pragma once

#include "script/reader.h"

/* Each function returns text, which may be "". */

/* For a word that is no condition, no action or, in the short form, neither of them, where one must be. */
const char *suggest_condition(const char *word, char text[READER_MEANT]);
const char *suggest_action(const char *word, char text[READER_MEANT]);
const char *suggest_short_item(const char *word, char text[READER_MEANT]);

/* For a word that is not the name of a call or a happening, where such a name must be. */
const char *suggest_call(const char *word, char text[READER_MEANT]);
