#include "pcap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLASSIC_MICROSECONDS = 0xa1b2c3d4,
    CLASSIC_NANOSECONDS = 0xa1b23c4d,
    CLASSIC_HEADER = 24,
    CLASSIC_RECORD = 16,
};

enum {
    BLOCK_SECTION = 0x0a0d0d0a,
    BLOCK_INTERFACE = 1,
    BLOCK_PACKET = 2, /* obsolete, still written by old programs */
    BLOCK_SIMPLE = 3,
    BLOCK_ENHANCED = 6,
    SECTION_ORDER = 0x1a2b3c4d,
    BLOCK_LEAST = 12,
    OPTION_END = 0,
    OPTION_COMMENT = 1,
    OPTION_FLAGS = 2, /* of a packet */
    OPTION_RESOLUTION = 9,
};

#define BLOCK_LOST 0x80737674u /* for a packet that softverbs did not write whole */

static uint16_t get16(const struct pcap *pcap, const uint8_t *from)
{
    uint16_t value;
    memcpy(&value, from, sizeof value);
    return pcap->swapped ? __builtin_bswap16(value) : value;
}

static uint32_t get32(const struct pcap *pcap, const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return pcap->swapped ? __builtin_bswap32(value) : value;
}

static uint64_t in_nanoseconds(uint64_t time, uint64_t ticks)
{
    uint64_t nanoseconds = time / ticks, rest = time % ticks;
    for (; ticks > UINT64_MAX / 10; ticks /= 2)
        rest /= 2;
    for (unsigned digit = 0; digit < 9; digit++) {
        nanoseconds = nanoseconds * 10 + rest * 10 / ticks;
        rest = rest * 10 % ticks;
    }
    return nanoseconds;
}

/* Returns whether the file in this byte order is a classic capture. Then its only interface is known. */
static bool is_classic(struct pcap *pcap, bool swapped)
{
    pcap->swapped = swapped;
    uint32_t magic = get32(pcap, pcap->bytes);
    if (pcap->length < CLASSIC_HEADER || (magic != CLASSIC_MICROSECONDS && magic != CLASSIC_NANOSECONDS))
        return false;
    pcap->interface[0].link = get32(pcap, pcap->bytes + 20) & 0xffff; /* the bits above are the FCS length */
    pcap->interface[0].ticks = magic == CLASSIC_NANOSECONDS ? 1000000000 : 1000000;
    pcap->interfaces = 1;
    pcap->at = CLASSIC_HEADER;
    return true;
}

int pcap_adopt(struct pcap *pcap, uint8_t *bytes, size_t length)
{
    *pcap = (struct pcap){.bytes = bytes, .length = length};
    if (length < 12)
        return EILSEQ;
    pcap->next_generation = get32(pcap, bytes) == BLOCK_SECTION; /* which reads the same in either order */
    return pcap->next_generation || is_classic(pcap, false) || is_classic(pcap, true) ? 0 : EILSEQ;
}

static int read_all(FILE *file, uint8_t **bytes, size_t *length)
{
    size_t room = 0;
    *bytes = NULL;
    *length = 0;
    do {
        room = room ? 2 * room : 1 << 16;
        uint8_t *larger = realloc(*bytes, room);
        if (!larger)
            return ENOMEM;
        *bytes = larger;
        *length += fread(*bytes + *length, 1, room - *length, file);
    } while (*length == room);
    return ferror(file) ? EIO : 0;
}

int pcap_read_file(const char *path, uint8_t **bytes, size_t *length)
{
    *bytes = NULL;
    FILE *file = fopen(path, "re");
    if (!file)
        return errno;
    errno = 0;
    int error = read_all(file, bytes, length);
    if (error == EIO && errno)
        error = errno;
    fclose(file);
    return error;
}

int pcap_open(struct pcap *pcap, const char *path)
{
    uint8_t *bytes;
    size_t length;
    *pcap = (struct pcap){0};
    int error = pcap_read_file(path, &bytes, &length);
    if (error) {
        free(bytes);
        return error;
    }
    error = pcap_adopt(pcap, bytes, length);
    if (error)
        pcap_close(pcap);
    return error;
}

void pcap_close(struct pcap *pcap)
{
    free(pcap->bytes);
    pcap->bytes = NULL;
}

/* The next `length` bytes of the file, or NULL. */
static const uint8_t *pass(struct pcap *pcap, size_t length)
{
    if (length > pcap->length - pcap->at) {
        pcap->broken = true;
        return NULL;
    }
    pcap->at += length;
    return pcap->bytes + pcap->at - length;
}

static bool next_classic(struct pcap *pcap, struct pcap_record *record)
{
    if (pcap->at == pcap->length)
        return false;
    const uint8_t *header = pass(pcap, CLASSIC_RECORD);
    if (!header)
        return false;
    uint64_t ticks = pcap->interface[0].ticks;
    record->nanoseconds = in_nanoseconds(get32(pcap, header) * ticks + get32(pcap, header + 4), ticks);
    record->length = get32(pcap, header + 8);
    record->original = get32(pcap, header + 12);
    record->link = pcap->interface[0].link;
    record->direction = PCAP_UNKNOWN;
    record->comment = NULL;
    record->bytes = pass(pcap, record->length);
    return record->bytes;
}

/* The option if_tsresol: a negative power of ten, or of two with the highest bit set. */
static uint64_t read_resolution(uint8_t value)
{
    uint64_t ticks = 1;
    unsigned power = value & 127;
    for (unsigned i = 0; i < power && ticks <= UINT64_MAX / 10; i++)
        ticks *= value & 128 ? 2 : 10;
    return ticks;
}

static bool add_interface(struct pcap *pcap, const uint8_t *body, size_t length)
{
    if (length < 8 || pcap->interfaces == PCAP_INTERFACES_MAX)
        return false;
    struct pcap_interface *interface = &pcap->interface[pcap->interfaces++];
    *interface = (struct pcap_interface){get16(pcap, body), 1000000};
    for (size_t at = 8; at + 4 <= length;) {
        uint16_t option = get16(pcap, body + at), size = get16(pcap, body + at + 2);
        if (option == OPTION_END || size > length - at - 4)
            break;
        if (option == OPTION_RESOLUTION && size == 1)
            interface->ticks = read_resolution(body[at + 4]);
        at += 4 + (((size_t)size + 3) & ~(size_t)3);
    }
    return true;
}

static void read_options(const struct pcap *pcap, const uint8_t *body, size_t at, size_t length,
                         struct pcap_record *record)
{
    while (at + 4 <= length) {
        uint16_t option = get16(pcap, body + at), size = get16(pcap, body + at + 2);
        if (option == OPTION_END || size > length - at - 4)
            break;
        if (option == OPTION_COMMENT && !record->comment) {
            record->comment = (const char *)body + at + 4;
            record->comment_length = size;
        }
        if (option == OPTION_FLAGS && size == 4)
            record->direction = get32(pcap, body + at + 4) & 3;
        at += 4 + (((size_t)size + 3) & ~(size_t)3);
    }
}

static bool fill_record(const struct pcap *pcap, uint32_t number, const uint8_t *body, size_t length,
                        struct pcap_record *record)
{
    if (length < 20 || number >= pcap->interfaces)
        return false;
    const struct pcap_interface *interface = &pcap->interface[number];
    uint64_t time = (uint64_t)get32(pcap, body + 4) << 32 | get32(pcap, body + 8);
    *record = (struct pcap_record){.bytes = body + 20,
                                   .length = get32(pcap, body + 12),
                                   .original = get32(pcap, body + 16),
                                   .link = interface->link,
                                   .nanoseconds = in_nanoseconds(time, interface->ticks)};
    if (record->length > length - 20)
        return false;
    read_options(pcap, body, 20 + ((record->length + 3) & ~(size_t)3), length, record);
    return true;
}

static bool fill_simple(const struct pcap *pcap, const uint8_t *body, size_t length, struct pcap_record *record)
{
    if (length < 4 || pcap->interfaces == 0)
        return false;
    size_t original = get32(pcap, body);
    *record = (struct pcap_record){.bytes = body + 4,
                                   .length = original < length - 4 ? original : length - 4,
                                   .original = original,
                                   .link = pcap->interface[0].link};
    return true;
}

/* Reads a block; *found: it has a packet. False: it is broken. */
static bool read_block(struct pcap *pcap, uint32_t type, const uint8_t *body, size_t length, struct pcap_record *record,
                       bool *found)
{
    *found = type == BLOCK_ENHANCED || type == BLOCK_PACKET || type == BLOCK_SIMPLE;
    switch (type) {
    case BLOCK_SECTION:
        pcap->interfaces = 0;
        return length >= 16;
    case BLOCK_INTERFACE:
        return add_interface(pcap, body, length);
    case BLOCK_ENHANCED:
        return length >= 4 && fill_record(pcap, get32(pcap, body), body, length, record);
    case BLOCK_PACKET:
        return length >= 2 && fill_record(pcap, get16(pcap, body), body, length, record);
    case BLOCK_SIMPLE:
        return fill_simple(pcap, body, length, record);
    default:
        return true;
    }
}

/* A section may have another byte order than the section before: the magic after its length says which. The type of
 * the block reads the same in either order. */
static bool find_order(struct pcap *pcap, const uint8_t *head)
{
    if (get32(pcap, head) != BLOCK_SECTION)
        return true;
    pcap->swapped = false;
    pcap->swapped = get32(pcap, head + 8) != SECTION_ORDER;
    return get32(pcap, head + 8) == SECTION_ORDER;
}

static bool is_whole(const struct pcap *pcap, const uint8_t *head, size_t room)
{
    uint32_t total = get32(pcap, head + 4);
    return total >= BLOCK_LEAST && !(total & 3) && total <= room && get32(pcap, head + total - 4) == total;
}

/* Returns whether a block begins there, within the file and with the same length at both ends. Reads the byte order of
 * a section's block. */
static bool is_block(struct pcap *pcap, size_t at)
{
    const uint8_t *head = pcap->bytes + at;
    bool before = pcap->swapped;
    if (pcap->length - at >= BLOCK_LEAST && find_order(pcap, head) && is_whole(pcap, head, pcap->length - at))
        return true;
    pcap->swapped = before;
    return false;
}

static bool next_block(struct pcap *pcap, struct pcap_record *record, bool *found)
{
    const uint8_t *head = pcap->bytes + pcap->at;
    uint32_t type = get32(pcap, head), total = get32(pcap, head + 4);
    pcap->lost += type == BLOCK_LOST ? total : 0;
    pcap->at += total;
    return read_block(pcap, type, head + 8, total - BLOCK_LEAST, record, found);
}

/* Bytes of a packet may look like a block, so a packet's block needs a known interface and a fitting length. */
static bool is_likely(struct pcap *pcap, size_t at)
{
    enum { HEAD = 28, TAIL = 4 };
    const uint8_t *head = pcap->bytes + at;
    uint32_t type = get32(pcap, head);
    bool known = type == BLOCK_SECTION || type == BLOCK_INTERFACE || type == BLOCK_ENHANCED || type == BLOCK_LOST;
    if (!known || !is_block(pcap, at))
        return false;
    uint32_t total = get32(pcap, head + 4);
    return type != BLOCK_ENHANCED || (total >= HEAD + TAIL && get32(pcap, head + 8) < pcap->interfaces &&
                                      get32(pcap, head + 20) <= total - HEAD - TAIL);
}

/* Finds the next likely block, after pcap->at, where no block begins, by a multiple of 4 bytes. */
static bool find_next_block(struct pcap *pcap)
{
    for (size_t at = pcap->at + 4; at < pcap->length && pcap->length - at >= BLOCK_LEAST; at += 4)
        if (is_likely(pcap, at)) {
            pcap->skipped += at - pcap->at;
            pcap->at = at;
            return true;
        }
    return false;
}

bool pcap_next(struct pcap *pcap, struct pcap_record *record)
{
    if (!pcap->next_generation)
        return next_classic(pcap, record);
    while (!pcap->broken && pcap->at < pcap->length) {
        bool found = false;
        if (!is_block(pcap, pcap->at) && !find_next_block(pcap))
            pcap->broken = true;
        else
            pcap->broken = !next_block(pcap, record, &found);
        if (found && !pcap->broken)
            return true;
    }
    return false;
}
