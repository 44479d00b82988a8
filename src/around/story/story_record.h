/* What is known of a queue pair for its story: story.c notes it, under the shadow's lock, and story_write.c writes a
 * copy of it. */
#pragma once

#include "around/story/port.h"
#include "check/shadow/shadow.h"
#include "events/last_events.h"

/* A port that queue pairs use. It is never freed. */
struct story_port {
    struct story_port *next;
    char path[IBV_SYSFS_PATH_MAX], device[IBV_SYSFS_NAME_MAX], driver[PORT_DRIVER];
    uint8_t number;
    _Atomic nanos since; /* when `before` was read; 0: not yet. Written after that */
    struct port_counters before;
};

/* A region of memory, registered or gone. */
struct story_region {
    uint64_t address, base, length;    /* as peers name it; in this process */
    const struct ibv_context *context; /* keys and handles are of one device */
    char device[IBV_SYSFS_NAME_MAX];
    uint32_t lkey, rkey, pd;
    int access;
    nanos gone; /* when it was deregistered; 0: it is registered */
};

enum { STORY_REGIONS = 64 };

/* The newest regions of the process, which overwrite the oldest. */
struct story_regions {
    struct story_region list[STORY_REGIONS];
    unsigned made; /* ever */
    bool others;   /* the process has had keys that are not here: of windows, and of memory without addresses */
};

/* The first completion in error that is no flush. */
struct story_failure {
    nanos time, posted; /* 0: not known */
    uint64_t wr_id, remote, length;
    uint32_t rkey, vendor_err;
    uint8_t opcode, status; /* of sends enum ibv_wr_opcode; enum ibv_wc_status. 0: there is no failure */
    bool receive;
    uint16_t reason;
    const struct place_of_post *place;
    struct story_memory memory; /* a local buffer that is refused */
};

struct story_qp {
    struct hash_entry by_serial;
    uint32_t number;
    enum ibv_qp_type type;
    enum ibv_qp_state state;
    struct ibv_qp_attr attr; /* what the program has given */
    int given;               /* enum ibv_qp_attr_mask */
    uint32_t flushed_sends, flushed_receives, send_posted, recv_posted;
    const char *event;          /* the last asynchronous event of the queue pair; NULL */
    nanos over;                 /* when the program destroyed it, or the process ended; 0: it lives */
    bool moved;                 /* the program moved it to ERR */
    struct story_port *port;    /* NULL: it was never in INIT */
    struct last_events *events; /* NULL: none yet */
    struct story_failure failure;
};

struct story_told {
    struct story_qp qp;
    struct last_events events;
    struct story_regions regions;
};

/* Appends the story to the user's file. Under no lock of the checker, as it may wait. */
void story_append(const struct story_told *);
