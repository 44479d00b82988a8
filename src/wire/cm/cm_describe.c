#include "wire/bytes.h"
#include "wire/cm/cm_fields.h"
#include "wire/cm/cm_ip.h"
#include "wire/line.h"

enum { BYTES_SHOWN = 32 };

/* Writes the bytes up to the last one that is not 0, at most BYTES_SHOWN of them. */
static void put_bytes(struct line *line, const char *label, const uint8_t *bytes, unsigned length)
{
    while (length && !bytes[length - 1])
        length--;
    if (!length)
        return;
    line_advance(line, snprintf(line->at, line->left, " %s 0x", label));
    for (unsigned i = 0; i < length && i < BYTES_SHOWN; i++)
        line_advance(line, snprintf(line->at, line->left, "%02x", bytes[i]));
    if (length > BYTES_SHOWN)
        line_word(line, "...");
}

static void put_field(struct line *line, const struct cm_field *field, const struct cm_message *message)
{
    if (field->width > 64) {
        put_bytes(line, field->name, (const uint8_t *)message + field->member, field->size);
        return;
    }
    uint64_t value = cm_field_value(field, message);
    if (!value || field->shift)
        return;
    if (field->decimal)
        line_number(line, field->name, value);
    else
        line_hex(line, field->name, value);
}

static void put_address(struct line *line, unsigned version, const uint8_t address[16])
{
    const uint8_t *last = address + 12;
    if (version == 4) {
        line_advance(line, snprintf(line->at, line->left, " %u.%u.%u.%u", last[0], last[1], last[2], last[3]));
        return;
    }
    for (unsigned i = 0; i < 16; i += 2)
        line_advance(line, snprintf(line->at, line->left, "%c%x", i ? ':' : ' ', bytes_get16(address + i)));
}

/* Describes the IP addressing with which the private data begins; returns its number of bytes, or 0. */
static unsigned put_ip(struct line *line, const struct cm_message *message)
{
    struct cm_ip ip;
    if (message->attribute != CM_REQ && message->attribute != CM_SIDR_REQ)
        return 0;
    if (cm_ip_decode(message->private_data, &ip) != CM_IP_FINE)
        return 0;
    line_number(line, "ip", ip.version);
    put_address(line, ip.version, ip.source);
    line_number(line, "port", ip.source_port);
    line_word(line, " >");
    put_address(line, ip.version, ip.destination);
    return CM_IP_BYTES;
}

char *cm_describe(const struct cm_message *message, char *to, size_t size)
{
    if (size == 0)
        return to;
    struct line line = {to, size};
    const struct cm_layout *layout = cm_layout(message->attribute);
    line_word(&line, cm_name(message->attribute));
    if (!layout)
        return to;
    line_hex(&line, "transaction", message->transaction);
    if (message->modifier)
        line_hex(&line, "modifier", message->modifier);
    for (const struct cm_field *field = layout->fields; field->width; field++)
        put_field(&line, field, message);
    unsigned skip = put_ip(&line, message);
    put_bytes(&line, "data", message->private_data + skip, cm_private_size(message->attribute) - skip);
    return to;
}
