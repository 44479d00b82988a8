#include "transport/testing/simulator/buffers.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_KEY = 0x1000, GARBAGE = 0xdd };

static uint32_t add(struct buffers *buffers, uint32_t length)
{
    if (buffers->count == buffers->room) {
        buffers->room = buffers->room ? 2 * buffers->room : 64;
        buffers->all = realloc(buffers->all, buffers->room * sizeof(*buffers->all));
    }
    buffers->all[buffers->count] = (struct buffer){malloc(length ? length : 1), length, 1};
    return FIRST_KEY + buffers->count++;
}

static struct buffer *find(const struct buffers *buffers, uint32_t key)
{
    return key - FIRST_KEY < buffers->count ? &buffers->all[key - FIRST_KEY] : NULL;
}

uint32_t buffers_spread(struct buffers *buffers, struct chance *chance, uint32_t length, uint32_t most,
                        struct ibv_sge *list)
{
    uint32_t count = chance_between(chance, 1, most);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t part = i + 1 == count ? length : chance_below(chance, length + 1);
        list[i] = (struct ibv_sge){.length = part, .lkey = add(buffers, part)};
        length -= part;
    }
    return count;
}

void buffers_keep(struct buffers *buffers, const struct ibv_sge *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        find(buffers, list[i].lkey)->users++;
}

void buffers_drop(struct buffers *buffers, const struct ibv_sge *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct buffer *buffer = find(buffers, list[i].lkey);
        if (!buffer || --buffer->users)
            continue;
        memset(buffer->bytes, GARBAGE, buffer->length);
        free(buffer->bytes);
        buffer->bytes = NULL;
    }
}

void buffers_write(struct buffers *buffers, const struct ibv_sge *list, uint32_t count, const uint8_t *from,
                   uint32_t length)
{
    for (uint32_t i = 0; i < count && length; i++) {
        uint32_t part = list[i].length < length ? list[i].length : length;
        memcpy(find(buffers, list[i].lkey)->bytes, from, part);
        from += part;
        length -= part;
    }
}

void buffers_fill(struct buffers *buffers, const struct ibv_sge *list, uint32_t count, uint8_t value)
{
    for (uint32_t i = 0; i < count; i++)
        memset(find(buffers, list[i].lkey)->bytes, value, list[i].length);
}

uint8_t buffers_at(const struct buffers *buffers, const struct ibv_sge *list, uint32_t count, uint32_t place)
{
    for (uint32_t i = 0; i < count; i++) {
        if (place < list[i].length)
            return find(buffers, list[i].lkey)->bytes[place];
        place -= list[i].length;
    }
    return 0;
}

uint32_t buffers_compare(const struct buffers *buffers, const struct ibv_sge *list, uint32_t count,
                         const uint8_t *wanted, uint32_t length)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < count && at < length; i++) {
        const uint8_t *bytes = find(buffers, list[i].lkey)->bytes;
        for (uint32_t j = 0; j < list[i].length && at < length; j++, at++)
            if (bytes[j] != wanted[at])
                return at;
    }
    return at;
}

enum reason buffers_find(const struct buffers *buffers, const struct ibv_sge *sge, struct iovec *memory)
{
    const struct buffer *buffer = find(buffers, sge->lkey);
    if (!buffer || !buffer->users)
        return REASON_LOCAL_KEY_UNKNOWN;
    if (sge->addr > buffer->length || sge->length > buffer->length - sge->addr)
        return REASON_LOCAL_RANGE;
    *memory = (struct iovec){buffer->bytes + sge->addr, sge->length};
    return REASON_NONE;
}

bool buffers_hold(const struct buffers *buffers, const struct iovec *memory)
{
    const uint8_t *start = memory->iov_base;
    for (uint32_t i = 0; i < buffers->count; i++) {
        const struct buffer *buffer = &buffers->all[i];
        if (buffer->users && start >= buffer->bytes && start + memory->iov_len <= buffer->bytes + buffer->length)
            return true;
    }
    return false;
}

void buffers_free(struct buffers *buffers)
{
    for (uint32_t i = 0; i < buffers->count; i++)
        if (buffers->all[i].users)
            free(buffers->all[i].bytes);
    free(buffers->all);
}
