/* The settings of an engine, in the order of a CONFIGURE record. */
#pragma once

#include "transport/settings.h"

#define SETTINGS_FIELDS(FIELD)                                                                                         \
    FIELD(service)                                                                                                     \
    FIELD(pkey)                                                                                                        \
    FIELD(destination)                                                                                                 \
    FIELD(segment)                                                                                                     \
    FIELD(reference_segment)                                                                                           \
    FIELD(reference_from)                                                                                              \
    FIELD(in_pieces)                                                                                                   \
    FIELD(references_lost)                                                                                             \
    FIELD(exact)                                                                                                       \
    FIELD(window)                                                                                                      \
    FIELD(first_window)                                                                                                \
    FIELD(timeout)                                                                                                     \
    FIELD(retry_count)                                                                                                 \
    FIELD(rnr_retry)                                                                                                   \
    FIELD(min_rnr_timer)                                                                                               \
    FIELD(max_rd_atomic)                                                                                               \
    FIELD(max_dest_rd_atomic)                                                                                          \
    FIELD(ack_mask)                                                                                                    \
    FIELD(acks_along)                                                                                                  \
    FIELD(access)                                                                                                      \
    FIELD(direct)                                                                                                      \
    FIELD(silence)                                                                                                     \
    FIELD(max_message)                                                                                                 \
    FIELD(number)                                                                                                      \
    FIELD(qkey)                                                                                                        \
    FIELD(options)

#define SETTINGS_MEMBER(field) field,
