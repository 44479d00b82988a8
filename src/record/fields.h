/* The settings of an engine as numbers, in the order of a CONFIGURE record. */
#ifndef RECORD_FIELDS_H
#define RECORD_FIELDS_H

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

#define SETTINGS_NAME(field) #field,
#define SETTINGS_NAMES SETTINGS_FIELDS(SETTINGS_NAME)
#define SETTINGS_ONE(field) +1
enum { SETTINGS_COUNT = SETTINGS_FIELDS(SETTINGS_ONE) };

static inline void settings_to_numbers(const struct engine_settings *settings, uint64_t numbers[SETTINGS_COUNT])
{
    uint64_t *to = numbers;
#define SETTINGS_PUT(field) *to++ = (uint64_t)settings->field;
    SETTINGS_FIELDS(SETTINGS_PUT)
#undef SETTINGS_PUT
}

static inline struct engine_settings settings_of_numbers(const uint64_t numbers[SETTINGS_COUNT])
{
    struct engine_settings settings;
    const uint64_t *from = numbers;
#define SETTINGS_GET(field) settings.field = (__typeof__(settings.field))*from++;
    SETTINGS_FIELDS(SETTINGS_GET)
#undef SETTINGS_GET
    return settings;
}

#endif
