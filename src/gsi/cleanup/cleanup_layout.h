/* The memory that a program and its cleanup process share: a sealed memfd of this one structure. It has no pointers.
 * The program writes the records, and the cleanup process reads them when the program has ended; both write `count`,
 * and the cleanup process writes `lives`. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum {
    CLEANUP_MAGIC = 0x73766370,
    CLEANUP_LAYOUT = 1,       /* the version of these structures; a cleanup process of another release ends at once */
    CLEANUP_SESSIONS = 16384, /* the most records; peers of further sessions get no message */
    CLEANUP_GOODBYE = 64,     /* bytes of a goodbye: the rest of its MAD is zeros */
    CLEANUP_TIMEOUT = 5,      /* seconds that the process lives without a session, and after the end of the program */
};

enum cleanup_state {
    CLEANUP_FREE,    /* the record is free, or half written */
    CLEANUP_SILENT,  /* no message is due to the peer, but its DREQ is answered */
    CLEANUP_GOODBYES /* `goodbye` is due to the peer */
};

struct cleanup_record {
    _Atomic uint32_t state;       /* enum cleanup_state; written last */
    uint32_t interface;           /* index of the interface that leads to the peer */
    uint32_t local_id, remote_id; /* communication IDs; 0: no connection, so no DREQ can arrive */
    uint8_t source[16], destination[16];
    uint8_t goodbye[CLEANUP_GOODBYE];
};

/* A bit of `count`: the cleanup process ends, as there was no session for a while, and reads no records any more. */
#define CLEANUP_OVER 0x80000000u

struct cleanup_shared {
    uint32_t magic, layout;
    uint32_t size;          /* of this structure */
    _Atomic uint32_t count; /* the records in use */
    _Atomic uint32_t lives; /* the cleanup process has found everything that it needs */
    struct cleanup_record records[CLEANUP_SESSIONS];
};

/* Descriptors of the cleanup process. */
enum { CLEANUP_MEMORY_AT = 3, CLEANUP_END_AT, CLEANUP_PROGRAM_AT, CLEANUP_DESCRIPTORS };
