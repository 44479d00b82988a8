/* Socket addresses in the bytes of commands. */
#pragma once

#include <stddef.h>

#include "cm/address.h"

/* Bytes of a socket address of this family; 0 if the family is unknown. */
size_t ucma_address_size(uint16_t family);

/* The address in these bytes. The family is 0 if it is unknown, or if its address is longer than `room`. */
struct cm_address ucma_address_read(const uint8_t *from, size_t room);

/* Writes the address, fills the rest of the `room` bytes with 0, and returns the address's length; 0 if it does not
 * fit. */
size_t ucma_address_write(const struct cm_address *, uint8_t *to, size_t room);
