/* Socket addresses in the bytes of commands. */
#ifndef ABI_UCMA_UCMA_ADDRESS_H
#define ABI_UCMA_UCMA_ADDRESS_H

#include <stddef.h>

#include "cm/address.h"

/* Bytes of a socket address of this family: 0 for one that is not known. */
size_t ucma_address_size(uint16_t family);

/* The address that begins there, with `room` bytes: family 0 when it is of none that is known, or longer than that. */
struct cm_address ucma_address_read(const uint8_t *from, size_t room);

/* Writes it, and returns how long it is; `room` bytes are there, of which the rest is 0. Nothing when it does not fit.
 */
size_t ucma_address_write(const struct cm_address *, uint8_t *to, size_t room);

/* The same of a GID, as AF_IB address of that service ID. */
size_t ucma_address_write_gid(const uint8_t gid[16], uint16_t pkey, uint64_t service, uint64_t mask, uint8_t *to,
                              size_t room);

#endif
