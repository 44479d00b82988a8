/* The output of commands with --json; docs/reference/json.md has the form of each. */
#pragma once

#include <jansson.h>

/* A JSON string of the text. Bytes that are no UTF-8 become '?'. NULL: JSON's null. */
json_t *emit_text(const char *);

/* Prints the value with line ends on standard output, and releases it. */
void emit(json_t *);
