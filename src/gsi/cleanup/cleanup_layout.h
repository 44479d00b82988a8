/* The memory that a program and its cleanup process share: a sealed file in memory of this one structure. It holds no
 * pointers. The program writes the records, the cleanup process reads them when the program has ended; both write
 * `count`, and the cleanup process writes `lives`. */
#ifndef GSI_CLEANUP_CLEANUP_LAYOUT_H
#define GSI_CLEANUP_CLEANUP_LAYOUT_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    CLEANUP_MAGIC = 0x73766370,
    CLEANUP_LAYOUT = 1,       /* of the structures here; a cleanup process of another release ends at once */
    CLEANUP_SESSIONS = 16384, /* records; peers of sessions beyond them get no message, as without this process */
    CLEANUP_GOODBYE = 64,     /* bytes of a goodbye: its MAD has zeros behind them */
    CLEANUP_PATIENCE = 5,     /* seconds: behind the last session, and behind the end of the program */
};

enum cleanup_state {
    CLEANUP_FREE,    /* or half written */
    CLEANUP_SILENT,  /* no message is due to the peer, and a DREQ of it is answered */
    CLEANUP_GOODBYES /* the peer is owed `goodbye` */
};

struct cleanup_record {
    _Atomic uint32_t state;       /* enum cleanup_state; written last */
    uint32_t interface;           /* index of the one that leads to the peer */
    uint32_t local_id, remote_id; /* communication IDs; 0: none, so no DREQ can come */
    uint8_t source[16], destination[16];
    uint8_t goodbye[CLEANUP_GOODBYE];
};

/* In `count`: the cleanup process has ended, as there was no session for a while. No session is counted any more. */
#define CLEANUP_OVER 0x80000000u

struct cleanup_shared {
    uint32_t magic, layout;
    uint32_t size;          /* of the structure */
    _Atomic uint32_t count; /* of records that are in use */
    _Atomic uint32_t lives; /* the cleanup process has found all that it needs */
    struct cleanup_record records[CLEANUP_SESSIONS];
};

/* Descriptors of the cleanup process. */
enum { CLEANUP_MEMORY_AT = 3, CLEANUP_END_AT, CLEANUP_PROGRAM_AT, CLEANUP_DESCRIPTORS };

#endif
