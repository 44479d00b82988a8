/* The format of a recording (softverbs run --record): the inputs of the engines of queue pairs by their five doors
 * (transport/engine/engine.h), the answers of their owners, and their actions.
 *
 * A file is RECORDING_MAGIC, the version as a number of 4 bytes, and records:
 *
 *   bytes  content
 *   -----  -------------------------------------------------------------
 *   4      length of the record in bytes, these included
 *   4      the process (its pid)
 *   4      the queue pair, as numbered in its process; 0: the process itself
 *   2      kind (enum record_kind)
 *   2      how many numbers follow
 *   8 each the numbers, as record.def names them
 *   rest   bytes
 *
 * All numbers are in little endian. A DOOR and the records of its effects follow each other, as they were one write.
 * Pure: no state, thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/fields.h"

#define RECORDING_MAGIC "SVRECORD"
enum {
    RECORDING_VERSION = 1,
    RECORDING_HEAD = 12,        /* bytes of magic and version */
    RECORD_HEAD = 16,           /* bytes before the numbers */
    RECORD_NUMBERS = 32,        /* at most */
    RECORD_LONGEST = 128 << 10, /* bytes of a record at most */
};

enum record_kind {
#define RECORD(name, ...) RECORD_##name,
#include "record/record.def"
    RECORD_KINDS
};

enum record_class { RECORD_CLASS_DOOR, RECORD_CLASS_ANSWER, RECORD_CLASS_RESULT, RECORD_CLASS_FACT };

struct record_line {
    const char *name; /* as record.def spells it */
    enum record_class class;
    const char *words;
    unsigned count;     /* of numbers */
    const char *fields; /* their names, with ", " between them */
};
extern const struct record_line record_lines[RECORD_KINDS];

struct record {
    enum record_kind kind;
    uint32_t process, queue;
    union {
        uint64_t numbers[RECORD_NUMBERS]; /* as many as its line says; the others are 0 */
#define RECORD(name, class, words, ...)                                                                                \
    struct {                                                                                                           \
        uint64_t __VA_ARGS__;                                                                                          \
    } name;
#include "record/record.def"
    };
    const uint8_t *bytes;
    uint32_t length; /* of the bytes */
};

/* Values of TAKE_RECEIVE.found. */
enum { RECEIVE_NONE, RECEIVE_FOUND, RECEIVE_TOO_SHORT, RECEIVE_UNFETCHED };

/* The operations of an owner that records or replays, by its functions on_sent and so on; for XRC add select_srq. */
#define RECORD_OPERATIONS                                                                                              \
    .sent = on_sent, .take_receive = on_take_receive, .return_receive = on_return_receive, .received = on_received,    \
    .local_memory = on_local_memory, .receive_memory = on_receive_memory, .remote_memory = on_remote_memory,           \
    .invalidate = on_invalidate, .local_operation = on_local_operation, .failed = on_failed, .event = on_event,        \
    .watch = on_watch, .note = on_note, .dropped = on_dropped

/* The settings in a CONFIGURE record. */
static inline struct engine_settings record_settings(const struct record *record)
{
    struct engine_settings settings = {0};
#define SETTINGS_GET(field) settings.field = (__typeof__(settings.field))record->CONFIGURE.field;
    SETTINGS_FIELDS(SETTINGS_GET)
#undef SETTINGS_GET
    return settings;
}

/* The size of a record of this kind with this many bytes after its numbers. */
size_t record_size(enum record_kind, size_t bytes);

/* Writes the record to `to`, which has room for record_size. Returns that size. */
size_t record_write(const struct record *, uint8_t *to);

enum record_fault {
    RECORD_FINE,
    RECORD_END,      /* nothing is left */
    RECORD_CUT,      /* the rest is shorter than a record */
    RECORD_DAMAGED,  /* not the beginning of a record */
    RECORD_NOT_OURS, /* the file does not begin with RECORDING_MAGIC */
    RECORD_VERSION,  /* its version is not RECORDING_VERSION */
};

/* Checks that a recording begins here: RECORD_FINE, _CUT (also of an empty file), _NOT_OURS or _VERSION, with
 * *version. */
enum record_fault record_check_head(const uint8_t *bytes, size_t length, uint32_t *version);
void record_write_head(uint8_t to[RECORDING_HEAD]);

/* Reads the record at the beginning of `bytes`; *size: its length. Total: any input gives a fault or a record, whose
 * bytes point into the input. */
enum record_fault record_read(const uint8_t *bytes, size_t length, struct record *, size_t *size);
