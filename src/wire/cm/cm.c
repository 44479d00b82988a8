#include "wire/cm/cm.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/cm/cm_fields.h"

/* The common header (IBA 13.4.3): base version 8 | class 8 | class version 8 | R 1, method 7 | status 16 | class
 * specific 16 | transaction 64 | attribute 16 | reserved 16 | attribute modifier 32. The method is Send in answers,
 * too. */
enum { BASE_VERSION = 1, CLASS = 0x07, CLASS_VERSION = 2, METHOD_SEND = 0x03 };
enum { TRANSACTION_AT = 8, ATTRIBUTE_AT = 16, MODIFIER_AT = 20, DATA_AT = 24, DATA_BYTES = MAD_BYTES - DATA_AT };

static const uint8_t head[] = {BASE_VERSION, CLASS, CLASS_VERSION, METHOD_SEND};

/* --- one field */

static uint64_t read_member(const void *member, unsigned size)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++) {
        unsigned at = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? size - 1 - i : i;
        value = value << 8 | ((const uint8_t *)member)[at];
    }
    return value;
}

static void write_member(void *member, unsigned size, uint64_t value)
{
    for (unsigned i = 0; i < size; i++, value >>= 8) {
        unsigned at = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? i : size - 1 - i;
        ((uint8_t *)member)[at] = (uint8_t)value;
    }
}

/* A field of more than 64 bits is an array of whole bytes. A narrower field ends in the byte in which it begins, or
 * begins at the beginning of a byte. */
static bool is_array(const struct cm_field *field)
{
    return field->width > 64;
}

static void put_field(const struct cm_field *field, const struct cm_message *from, uint8_t *data)
{
    const uint8_t *member = (const uint8_t *)from + field->member;
    if (is_array(field)) {
        memcpy(data + field->bit / 8, member, field->width / 8);
        return;
    }
    uint64_t value = read_member(member, field->size) >> field->shift;
    for (unsigned left = field->width, bit = field->bit; left;) {
        unsigned room = 8 - bit % 8, take = left < room ? left : room;
        left -= take;
        data[bit / 8] |= (uint8_t)((value >> left & ((1u << take) - 1)) << (room - take));
        bit += take;
    }
}

static void get_field(const struct cm_field *field, struct cm_message *to, const uint8_t *data)
{
    uint8_t *member = (uint8_t *)to + field->member;
    if (is_array(field)) {
        memcpy(member, data + field->bit / 8, field->width / 8);
        return;
    }
    uint64_t value = 0;
    for (unsigned left = field->width, bit = field->bit; left;) {
        unsigned room = 8 - bit % 8, take = left < room ? left : room;
        value = value << take | (data[bit / 8] >> (room - take) & ((1u << take) - 1));
        left -= take;
        bit += take;
    }
    write_member(member, field->size, read_member(member, field->size) | value << field->shift);
}

uint64_t cm_field_value(const struct cm_field *field, const struct cm_message *message)
{
    return read_member((const uint8_t *)message + field->member, field->size);
}

/* --- a message */

void cm_encode(const struct cm_message *message, uint8_t to[MAD_BYTES])
{
    const struct cm_layout *layout = cm_layout(message->attribute);
    memset(to, 0, MAD_BYTES);
    memcpy(to, head, sizeof head);
    bytes_put64(to + TRANSACTION_AT, message->transaction);
    bytes_put16(to + ATTRIBUTE_AT, (uint16_t)message->attribute);
    bytes_put32(to + MODIFIER_AT, message->modifier);
    if (!layout)
        return;
    for (const struct cm_field *field = layout->fields; field->width; field++)
        put_field(field, message, to + DATA_AT);
    memcpy(to + DATA_AT + layout->private_at, message->private_data, DATA_BYTES - layout->private_at);
}

static unsigned information_length(const struct cm_message *message)
{
    if (message->attribute == CM_REJ)
        return message->rej.information_length;
    return message->attribute == CM_SIDR_REP ? message->sidr_rep.information_length : 0;
}

enum cm_fault cm_decode(const uint8_t *bytes, size_t length, struct cm_message *message)
{
    memset(message, 0, sizeof *message);
    if (length < MAD_BYTES)
        return CM_TRUNCATED;
    if (memcmp(bytes, head, sizeof head))
        return CM_CLASS;
    message->attribute = bytes_get16(bytes + ATTRIBUTE_AT);
    const struct cm_layout *layout = cm_layout(message->attribute);
    if (!layout)
        return CM_ATTRIBUTE;
    message->transaction = bytes_get64(bytes + TRANSACTION_AT);
    message->modifier = bytes_get32(bytes + MODIFIER_AT);
    for (const struct cm_field *field = layout->fields; field->width; field++)
        get_field(field, message, bytes + DATA_AT);
    memcpy(message->private_data, bytes + DATA_AT + layout->private_at, DATA_BYTES - layout->private_at);
    return information_length(message) > CM_INFORMATION_MAX ? CM_LENGTH : CM_FINE;
}

unsigned cm_private_size(enum cm_attribute attribute)
{
    const struct cm_layout *layout = cm_layout(attribute);
    return layout ? DATA_BYTES - layout->private_at : 0;
}

bool cm_is_reply(enum cm_attribute attribute)
{
    const struct cm_layout *layout = cm_layout(attribute);
    return layout && layout->reply;
}

const char *cm_name(enum cm_attribute attribute)
{
    const struct cm_layout *layout = cm_layout(attribute);
    return layout ? layout->name : "unknown";
}
