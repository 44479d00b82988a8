#include "record/record.h"

#include <string.h>

#define COUNT_OF(name) (sizeof((struct record){0}.name) / sizeof(uint64_t))
#define NAMES_OF(...) #__VA_ARGS__

const struct record_line record_lines[RECORD_KINDS] = {
#define RECORD(name, class, words, ...)                                                                                \
    [RECORD_##name] = {#name, RECORD_CLASS_##class, words, COUNT_OF(name), NAMES_OF(__VA_ARGS__)},
#include "record/record.def"
};

static uint8_t *put_little(uint8_t *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        *to++ = (uint8_t)(value >> 8 * i);
    return to;
}

static uint64_t get_little(const uint8_t *from, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

size_t record_size(enum record_kind kind, size_t bytes)
{
    return RECORD_HEAD + record_lines[kind].count * sizeof(uint64_t) + bytes;
}

size_t record_write(const struct record *record, uint8_t *to)
{
    unsigned count = record_lines[record->kind].count;
    size_t size = record_size(record->kind, record->length);
    to = put_little(put_little(put_little(to, size, 4), record->process, 4), record->queue, 4);
    to = put_little(put_little(to, record->kind, 2), count, 2);
    for (unsigned i = 0; i < count; i++)
        to = put_little(to, record->numbers[i], 8);
    if (record->length)
        memcpy(to, record->bytes, record->length);
    return size;
}

void record_write_head(uint8_t to[RECORDING_HEAD])
{
    memcpy(to, RECORDING_MAGIC, 8);
    put_little(to + 8, RECORDING_VERSION, 4);
}

enum record_fault record_check_head(const uint8_t *bytes, size_t length, uint32_t *version)
{
    if (memcmp(bytes, RECORDING_MAGIC, length < 8 ? length : 8))
        return RECORD_NOT_OURS;
    if (length < RECORDING_HEAD)
        return RECORD_CUT;
    *version = (uint32_t)get_little(bytes + 8, 4);
    return *version == RECORDING_VERSION ? RECORD_FINE : RECORD_VERSION;
}

enum record_fault record_read(const uint8_t *bytes, size_t length, struct record *record, size_t *size)
{
    if (!length)
        return RECORD_END;
    if (length < RECORD_HEAD)
        return RECORD_CUT;
    *size = get_little(bytes, 4);
    unsigned kind = (unsigned)get_little(bytes + 12, 2), count = (unsigned)get_little(bytes + 14, 2);
    if (kind >= RECORD_KINDS || count != record_lines[kind].count || *size > RECORD_LONGEST ||
        *size < record_size(kind, 0))
        return RECORD_DAMAGED;
    if (*size > length)
        return RECORD_CUT;
    *record = (struct record){
        .kind = kind, .process = (uint32_t)get_little(bytes + 4, 4), .queue = (uint32_t)get_little(bytes + 8, 4)};
    for (unsigned i = 0; i < count; i++)
        record->numbers[i] = get_little(bytes + RECORD_HEAD + 8 * i, 8);
    record->bytes = bytes + record_size(kind, 0);
    record->length = (uint32_t)(*size - record_size(kind, 0));
    return RECORD_FINE;
}
