/* Registered memory of a program that reuses it the moment it may: a buffer without users is overwritten and freed,
 * and its key is gone, so that an engine that still touches it is found. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "diag/diag.h"
#include "transport/testing/simulator/chance.h"

struct buffer {
    uint8_t *bytes;
    uint32_t length;
    uint32_t users;
};

struct buffers {
    struct buffer *all;
    uint32_t count, room;
};

/* A scatter/gather list of new buffers for `length` bytes, at most `most` elements, some perhaps empty. Returns their
 * number; each buffer has one user. */
uint32_t buffers_spread(struct buffers *, struct chance *, uint32_t length, uint32_t most, struct ibv_sge *);

/* buffers_keep gives the list's elements one more user, buffers_drop one less. */
void buffers_keep(struct buffers *, const struct ibv_sge *, uint32_t count);
void buffers_drop(struct buffers *, const struct ibv_sge *, uint32_t count);

/* Copies between the list and plain bytes. */
void buffers_write(struct buffers *, const struct ibv_sge *, uint32_t count, const uint8_t *from, uint32_t length);
void buffers_fill(struct buffers *, const struct ibv_sge *, uint32_t count, uint8_t value);

/* The byte at this place of the list. */
uint8_t buffers_at(const struct buffers *, const struct ibv_sge *, uint32_t count, uint32_t place);

/* The place where the first `length` bytes of the list differ from `wanted`; `length`: they do not. */
uint32_t buffers_compare(const struct buffers *, const struct ibv_sge *, uint32_t count, const uint8_t *wanted,
                         uint32_t length);

enum reason buffers_find(const struct buffers *, const struct ibv_sge *, struct iovec *);

/* Returns true if the memory belongs to a buffer that is in use. */
bool buffers_hold(const struct buffers *, const struct iovec *);
void buffers_free(struct buffers *);
