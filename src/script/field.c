#include "script/field.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "base/text/text.h"
#include "wire/packet.h"

static const struct script_field fields[] = {
#define FIELD(happening, word, type, member, mask)                                                                     \
    {SCRIPT_##happening, word, offsetof(type, member), sizeof(((type *)0)->member), mask},
#include "script/words.def"
};

static const struct {
    const char *word, *name;
    uint64_t number;
} values[] = {
#define VALUE(word, name, number) {word, #name, number},
#include "script/words.def"
};

static const struct script_field *field_of(enum script_call call, const char *word)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].call == call && !strcmp(fields[i].word, word))
            return &fields[i];
    return NULL;
}

const struct script_field *field_find(const bool calls[SCRIPT_EVENTS], const char *word)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (calls[fields[i].call] && !strcmp(fields[i].word, word))
            return &fields[i];
    return NULL;
}

void field_suggest(const bool calls[SCRIPT_EVENTS], struct suggestion *suggestion)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (calls[fields[i].call])
            suggest_try(suggestion, fields[i].word);
}

void field_suggest_value(const char *word, struct suggestion *suggestion)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (!strcmp(values[i].word, word))
            suggest_try(suggestion, values[i].name);
}

bool field_fits(const struct script_rule *rule, enum script_call call)
{
    for (unsigned i = 0; i < rule->changes.count; i++)
        if (!field_of(call, rule->changes.list[i].word))
            return false;
    return true;
}

/* Reads "::" or "fe80::1"; "10.0.0.1" becomes the GID that RoCE has for it. */
static bool read_gid(const char *value, uint8_t gid[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    memcpy(gid, mapped, sizeof mapped);
    return inet_pton(AF_INET, value, gid + sizeof mapped) == 1 || inet_pton(AF_INET6, value, gid) == 1;
}

static uint64_t most_of(const struct script_field *field)
{
    uint64_t all = field->size >= 8 ? UINT64_MAX : (1ull << 8 * field->size) - 1;
    return field->mask ? field->mask >> __builtin_ctzll(field->mask) : all;
}

/* Returns true if the names of the values are numbers: an MTU in bytes is not the number that the API has for it. */
static bool is_named_by_numbers(const char *word)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (!strcmp(values[i].word, word))
            return *values[i].name >= '0' && *values[i].name <= '9';
    return false;
}

bool field_read(const struct script_field *field, const char *value, struct script_change *change)
{
    change->word = field->word;
    if (field->size == sizeof change->bytes)
        return read_gid(value, change->bytes);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (!strcmp(values[i].word, field->word) && !strcmp(values[i].name, value)) {
            change->number = values[i].number;
            return true;
        }
    if (is_named_by_numbers(field->word))
        return false;
    return text_number_or_hex(value, 0, most_of(field), &change->number);
}

#define CHANGE(type)                                                                                                   \
    do {                                                                                                               \
        type whole, mask = field->mask ? (type)field->mask : (type) ~(type)0;                                          \
        memcpy(&whole, at, sizeof whole);                                                                              \
        whole = (type)((whole & ~mask) | (number & mask));                                                             \
        memcpy(at, &whole, sizeof whole);                                                                              \
    } while (0)

void field_change(const struct script_change *change, enum script_call call, void *answer, size_t size)
{
    const struct script_field *field = field_of(call, change->word);
    if (!field || field->offset + field->size > size)
        return;
    uint8_t *at = (uint8_t *)answer + field->offset;
    uint64_t number = change->number << (field->mask ? __builtin_ctzll(field->mask) : 0);
    if (field->size == sizeof change->bytes)
        memcpy(at, change->bytes, sizeof change->bytes);
    else if (field->size == 1)
        CHANGE(uint8_t);
    else if (field->size == 2)
        CHANGE(uint16_t);
    else if (field->size == 4)
        CHANGE(uint32_t);
    else
        CHANGE(uint64_t);
}
