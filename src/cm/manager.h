/* The communication manager of a process: the state that all its identifiers and sessions share. Pure: no socket,
 * clock, thread, lock or allocation; one caller at a time. dispatch.h has its inputs and outputs, identifier.h the
 * commands of programs. */
#ifndef CM_MANAGER_H
#define CM_MANAGER_H

#include <stdarg.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/hash.h"
#include "base/timers.h"
#include "cm/address.h"
#include "diag/diag.h"
#include "events/events.h"
#include "wire/cm.h"

struct identifier;
struct manager;
struct session;

struct manager_refusal {
    const struct identifier *identifier; /* that the command names; NULL: none */
    const struct cm_address *address;    /* that it is about; NULL: about none */
    bool usual;                          /* programs make such a call to learn what is to be had */
    int error;
    enum reason reason;
};

/* How the engine reaches the world. None may call back into it. Errors are positive errno values. */
struct manager_operations {
    /* Zeroed memory, or NULL; and back. */
    void *(*allocate)(struct manager *, size_t);
    void (*release)(struct manager *, void *);

    /* The port that has this address, which is no wildcard; its device is CM_NOWHERE for a loopback address that is no
     * port's own. EADDRNOTAVAIL: not of this host. ENODEV: no device there. It has logged why, as bind_port and
     * listen_port have. */
    int (*find_port)(struct manager *, const struct cm_address *, struct cm_port *);

    /* The way to the destination: from that port (NULL: from whichever leads there) and that source (the wildcard: one
     * that suits; it is written back, without its port). ENETUNREACH, EHOSTUNREACH: the host has no route. ENODEV: it
     * leads to no device. EAGAIN: the neighbour on it has been asked for and not answered yet. */
    int (*find_route)(struct manager *, const struct cm_port *, struct cm_address *source,
                      const struct cm_address *destination, struct cm_route *);

    /* The host's table of ports: enters the identifier's source address (port 0: one that is free is chosen and written
     * to it), marks it as listening, takes it out. EADDRINUSE, EADDRNOTAVAIL, ENOSPC. */
    int (*bind_port)(struct manager *, struct identifier *);
    int (*listen_port)(struct manager *, struct identifier *);
    void (*release_port)(struct manager *, struct identifier *);

    /* A session has changed, or goes. */
    void (*note)(struct manager *, struct session *);
    void (*forget)(struct manager *, struct session *);

    /* Logs why a command is refused (events/refusal.h); the text has its numbers. */
    void (*refuse)(struct manager *, const struct manager_refusal *, const char *format, va_list);

    /* A message that has come was of no use: REASON_CM_BACKLOG to REASON_CM_UNEXPECTED. */
    void (*drop)(struct manager *, enum reason);

    /* By how much the timewait of a connection is longer than it must be. NULL: by nothing. */
    nanos (*linger)(struct manager *);

    /* Something happened to the connection with this communication ID that events/events.def has a line for, with its
     * fields. NULL: not reported. */
    void (*event)(struct manager *, uint32_t communication_id, enum event, uint64_t a, uint64_t b);

    /* Likewise, to an identifier: the owner may keep it in identifier->told. Of an event for the program `a` is its
     * kind (enum cm_event_kind), of messages and states their names. NULL: not reported. */
    void (*happened)(struct manager *, struct identifier *, enum event, uint64_t a, uint64_t b);
};

/* One exchange with a peer: a connection, or the resolution of a service. It outlives its identifier while there is
 * something left to say or to wait for. */
struct session_operations {
    bool (*receive)(struct session *, const struct cm_message *, nanos now); /* false: it changed nothing */
    void (*expire)(struct session *, nanos now);
    nanos (*deadline)(const struct session *);               /* when to expire; NANOS_NEVER */
    bool (*transmit)(struct session *, struct cm_message *); /* the next message to send; false: none */
    void (*bereave)(struct session *, nanos now);            /* the peer's process has ended */
    void (*abandon)(struct session *, nanos now);            /* its identifier goes: says goodbye */
    /* The message that the peer needs if this process ends now; false: none. */
    bool (*goodbye)(const struct session *, struct cm_message *);
    bool (*is_finished)(const struct session *); /* no identifier, nothing left: may be released */
};

struct session {
    const struct session_operations *operations;
    struct manager *manager;
    struct identifier *identifier; /* NULL: it went */
    struct cm_route route;
    struct hash_entry by_local, by_remote, by_qp;
    struct timer timer;
    TAILQ_ENTRY(session) output;
    bool has_output; /* in manager->output */
    uint32_t record; /* the owner's, of `note`; 0: none */
};

TAILQ_HEAD(session_list, session);
LIST_HEAD(identifier_list, identifier);

enum {
    MANAGER_BUCKETS = 4096, /* of each table */
    MANAGER_REPEATS = 15    /* the standard, as that of kernels */
};

struct manager {
    const struct manager_operations *operations;
    struct timers timers;
    struct hash identifiers; /* by number */
    struct hash local;       /* sessions by our communication ID */
    struct hash remote;      /* by the peer's GUID and communication ID, or GID and RequestID */
    struct hash remote_qp;   /* by the peer's GUID and queue pair */
    struct identifier_list listeners;
    struct session_list output;
    uint32_t sessions;
    uint32_t agent; /* upper half of the transactions that begin here */
    uint32_t first_id, next_id;
    uint32_t number_seed, next_number;
    uint64_t random;
    uint8_t repeats;
};

/* The choices of the owner. */
struct manager_settings {
    struct hash_entry **buckets; /* 4 * MANAGER_BUCKETS, all NULL */
    uint32_t agent;
    uint64_t seed;     /* unpredictable: PSNs come of it */
    uint32_t first_id; /* of 256 numbers: communication IDs have them as their low 24 bits */
    uint8_t repeats;   /* how often a request that is not answered is sent again, 0 to 15 */
};

void manager_initialize(struct manager *, const struct manager_operations *, const struct manager_settings *);

/* Releases all sessions, which must have no identifiers any more, without a word. */
void manager_end(struct manager *);

uint64_t manager_random(struct manager *);

/* A communication ID that no session has. */
uint32_t manager_communication_id(struct manager *);

/* Enters a session, which has `route` and is found by that communication ID. */
void session_enter(struct session *, struct manager *, const struct session_operations *, uint32_t local_id);

/* From now on it is found by the peer's, too. */
void session_know_remote(struct session *, uint64_t guid, uint32_t remote_id, uint32_t qpn);

/* Of a resolution: found by the peer's address, which is in `route`, and its RequestID. */
void session_know_request(struct session *, uint32_t request);

/* Behind everything that may have changed a session: sends its output, and releases it when it is finished. The session
 * must not be used any more if it has no identifier. */
void session_settle(struct session *);

struct session *manager_find_local(const struct manager *, uint32_t local_id);

/* The first session behind `after` (NULL: of all) that may be the one: the caller compares. */
struct session *manager_find_remote(const struct manager *, uint64_t guid, uint32_t remote_id,
                                    const struct session *after);
struct session *manager_find_request(const struct manager *, const uint8_t gid[16], uint32_t request,
                                     const struct session *after);
struct session *manager_find_remote_qp(const struct manager *, uint64_t guid, uint32_t qpn,
                                       const struct session *after);

#endif
