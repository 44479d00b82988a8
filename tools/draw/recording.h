/* The file of `softverbs run --record`, as entries: the packets that queue pairs transmitted and received, and between
 * them work that was posted and that ended, timers, errors. */
#pragma once

#include "draw/records.h"

struct bytes {
    uint8_t *bytes;
    size_t length;
};

/* Returns whether the bytes begin as a recording of any version does. */
bool recording_is(const struct bytes *);

/* Reads like records_read. An entry's number is its record's, as `softverbs replay --until` counts. */
bool recording_read(struct records *, const char *path, const struct bytes *, uint32_t file,
                    const struct records_choice *);
