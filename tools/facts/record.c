#include "facts/record.h"

#include <string.h>

#include "events/lines.h"

static const json_t *field_of(const json_t *record, enum event_field field)
{
    char key[32];
    size_t length = 0;
    for (const char *word = event_field_word(field); word[length] && length + 1 < sizeof key; length++)
        key[length] = word[length] == ' ' ? '_' : word[length];
    key[length] = 0;
    return json_object_get(record, key);
}

bool record_is_field(const char *key)
{
    return strcmp(key, "time") != 0 && strcmp(key, "event") != 0;
}

const char *record_name(const json_t *record)
{
    const char *name = json_string_value(json_object_get(record, "event"));
    return name ? name : "";
}

bool record_is(const json_t *record, enum event event)
{
    return !strcmp(record_name(record), event_lines[event].name);
}

json_int_t record_time(const json_t *record)
{
    return json_integer_value(json_object_get(record, "time"));
}

json_int_t record_number(const json_t *record, enum event_field field)
{
    return json_integer_value(field_of(record, field));
}

const char *record_text(const json_t *record, enum event_field field)
{
    const char *text = json_string_value(field_of(record, field));
    return text ? text : "";
}

const json_t *record_last(const json_t *records, enum event event)
{
    for (size_t i = json_array_size(records); i--;)
        if (record_is(json_array_get(records, i), event))
            return json_array_get(records, i);
    return NULL;
}
