/* The places of the fields of CM messages: tables for cm.c, which encodes and decodes, and for cm_describe.c. */
#pragma once

#include "wire/cm/cm.h"

struct cm_field {
    const char *name;
    uint16_t bit;    /* its first bit, counted from the end of the common header, the highest bit of a byte first */
    uint16_t width;  /* bits; 0 ends a table */
    uint16_t member; /* of struct cm_message: its place and its size in bytes */
    uint8_t size;
    bool decimal;
    uint8_t shift; /* the place of the field's lowest bit in the member, if several fields make up the member */
};

struct cm_layout {
    const char *name;
    const struct cm_field *fields;
    uint8_t private_at; /* the byte at which private data begins, which ends with the datagram */
    bool reply;
};

/* Returns the layout of an attribute; NULL if it does not exist. */
const struct cm_layout *cm_layout(enum cm_attribute);

/* The value of a field's member, which must not be an array of bytes (so it has at most 64 bits); if several fields
 * make up the member, the value of all of them. */
uint64_t cm_field_value(const struct cm_field *, const struct cm_message *);
