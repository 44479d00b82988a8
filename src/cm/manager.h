/* The communication manager of a process: the state that all its identifiers and sessions share. Pure: no socket,
 * clock, thread, lock or allocation; one caller at a time. dispatch.h has its inputs and outputs, identifier.h the
 * commands of programs. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/hash.h"
#include "base/timers.h"
#include "cm/address.h"
#include "diag/diag.h"
#include "events/events.h"
#include "wire/cm/cm.h"

struct identifier;
struct manager;
struct session;

struct manager_refusal {
    const struct identifier *identifier; /* the identifier that the command names, or NULL */
    const struct cm_address *address;    /* the address that the refusal is about, or NULL */
    bool usual;                          /* programs make such a call to learn what they can have */
    int error;
    enum reason reason;
};

/* The owner's functions, which must not call back into the engine. Errors are positive errno values. */
struct manager_operations {
    /* Allocate zeroed memory, or return NULL; release it. */
    void *(*allocate)(struct manager *, size_t);
    void (*release)(struct manager *, void *);

    /* Finds the port of this address, which is not a wildcard; the port's device is CM_NOWHERE for a loopback address
     * that is no device's own. EADDRNOTAVAIL: not an address of this host. ENODEV: no device serves the address. This
     * function, bind_port and listen_port have logged why they fail. */
    int (*find_port)(struct manager *, const struct cm_address *, struct cm_port *);

    /* Finds the route to the destination from this port (NULL: from any port that leads there) and this source (for a
     * wildcard one that suits is found and written back, without its port). ENETUNREACH, EHOSTUNREACH: the host has no
     * route. ENODEV: the route leads over no device. EAGAIN: the neighbour on the route has not answered yet. */
    int (*find_route)(struct manager *, const struct cm_port *, struct cm_address *source,
                      const struct cm_address *destination, struct cm_route *);

    /* Returns true if this search must get no answer, because a test wants it so. `kind` is the event that reports it,
     * CM_ROUTE_ERROR or CM_MULTICAST_ERROR, the address is the destination or the group. NULL: no search is lost. */
    bool (*loses)(struct manager *, unsigned kind, const struct cm_address *);

    /* Enter the identifier's source address into the host's table of ports (port 0: a free one is chosen and written to
     * the address), mark it there as listening, remove it. EADDRINUSE, EADDRNOTAVAIL, ENOSPC. */
    int (*bind_port)(struct manager *, struct identifier *);
    int (*listen_port)(struct manager *, struct identifier *);
    void (*release_port)(struct manager *, struct identifier *);

    /* Called when a session has changed, and before it is released. */
    void (*note)(struct manager *, struct session *);
    void (*forget)(struct manager *, struct session *);

    /* Logs why a command is refused (events/refusal.h); the text has the numbers of that case. */
    void (*refuse)(struct manager *, const struct manager_refusal *, const char *format, va_list);

    /* Notes a message of no use that has arrived: REASON_CM_BACKLOG to REASON_CM_UNEXPECTED. The identifier that the
     * message was for, and the message, may be NULL. */
    void (*drop)(struct manager *, enum reason, const struct identifier *, const struct cm_message *);

    /* Time that is added to a connection's timewait. NULL: no time. */
    nanos (*linger)(struct manager *);

    /* Reports an event of events/events.def, with its fields, of the connection with this communication ID. NULL: such
     * events are not reported. */
    void (*event)(struct manager *, uint32_t communication_id, enum event, uint64_t a, uint64_t b);

    /* Reports an event of an identifier; the owner may keep it in identifier->told. `a` is the kind (enum
     * cm_event_kind) of an event for the program, or the name of a message or a state. NULL: such events are not
     * reported. */
    void (*happened)(struct manager *, struct identifier *, enum event, uint64_t a, uint64_t b);
};

/* The operations of an exchange with a peer: a connection, or the resolution of a service. It outlives its identifier
 * while there is a message to send or to wait for. */
struct session_operations {
    bool (*receive)(struct session *, const struct cm_message *, nanos now); /* false: it changed nothing */
    void (*expire)(struct session *, nanos now);
    nanos (*deadline)(const struct session *);               /* when to expire; NANOS_NEVER */
    bool (*transmit)(struct session *, struct cm_message *); /* the next message to send; false: there is no message */
    void (*bereave)(struct session *, nanos now);            /* the peer's process has ended */
    void (*abandon)(struct session *, nanos now);            /* its identifier is destroyed: says goodbye */
    /* The message that the peer needs if this process ends now; false: it needs no message. */
    bool (*goodbye)(const struct session *, struct cm_message *);
    bool (*is_finished)(const struct session *); /* it has no identifier and nothing to do: it may be released */
};

struct session {
    const struct session_operations *operations;
    struct manager *manager;
    struct identifier *identifier; /* NULL: destroyed */
    struct cm_route route;
    struct hash_entry by_local, by_remote, by_qp;
    struct timer timer;
    TAILQ_ENTRY(session) output;
    bool has_output; /* in manager->output */
    uint32_t record; /* the owner's record of `note`, or 0 */
};

TAILQ_HEAD(session_list, session);
LIST_HEAD(identifier_list, identifier);

enum {
    MANAGER_BUCKETS = 4096, /* of each table */
    MANAGER_RETRIES = 15    /* the default, as in kernels */
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
    uint32_t next_number;
    uint64_t random;
    uint8_t retries;
};

/* The choices of the owner. */
struct manager_settings {
    struct hash_entry **buckets; /* 4 * MANAGER_BUCKETS, all NULL */
    uint32_t agent;
    uint64_t seed;     /* unpredictable, as PSNs are made of it */
    uint32_t first_id; /* the first of 256 numbers that are the low 24 bits of communication IDs */
    uint8_t retries;   /* how often an unanswered request is sent again, 0 to 15 */
};

void manager_initialize(struct manager *, const struct manager_operations *, const struct manager_settings *);

/* Releases all sessions, which must have no identifiers any more; sends no message. */
void manager_end(struct manager *);

uint64_t manager_random(struct manager *);

/* Returns true if the owner loses this search (manager_operations). */
static inline bool manager_loses(struct manager *manager, unsigned kind, const struct cm_address *address)
{
    return manager->operations->loses && manager->operations->loses(manager, kind, address);
}

/* Allocates a session, whose struct has this size and begins with a struct session, and enters it under a communication
 * ID that no other has. NULL: no memory. */
struct session *session_open(struct manager *, struct identifier *, const struct cm_route *, size_t size,
                             const struct session_operations *);

/* Lets the session be found by these values of the peer, too. */
void session_know_remote(struct session *, uint64_t guid, uint32_t remote_id, uint32_t qpn);

/* Lets a resolution be found by the peer's address, which is in its route, and the RequestID. */
void session_know_request(struct session *, uint32_t request);

/* Called after everything that may have changed a session: queues it for output and sets its timer, or releases it if
 * it is finished. A session without an identifier must not be used afterwards. */
void session_settle(struct session *);

struct session *manager_find_local(const struct manager *, uint32_t local_id);

/* The first session after `after` (NULL: of all) that may be the wanted one: the caller compares these values. */
struct session *manager_find_remote(const struct manager *, uint64_t guid, uint32_t remote_id,
                                    const struct session *after);
struct session *manager_find_request(const struct manager *, const uint8_t gid[16], uint32_t request,
                                     const struct session *after);
struct session *manager_find_remote_qp(const struct manager *, uint64_t guid, uint32_t qpn,
                                       const struct session *after);
