#include "emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *emit_text(const char *text)
{
    json_t *string = text ? json_string(text) : json_null();
    char *copy = string ? NULL : strdup(text);
    for (char *byte = copy; byte && *byte; byte++)
        if (*byte & 0x80)
            *byte = '?';
    if (copy)
        string = json_string(copy);
    free(copy);
    return string ? string : json_null();
}

void emit(json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15) | JSON_ENCODE_ANY);
    puts("");
    json_decref(value);
}
