/* The connection manager of this process: the owner of the engine in src/cm. It gives the engine memory, time,
 * addresses, the host's ports and devices, and carries its messages: to processes of this host in frames for queue pair
 * 1, to other hosts in datagrams.
 *
 * Commands run between cm_begin and cm_end, under one lock, which is taken after process->progress and before the locks
 * of the node and the links. */
#pragma once

#include "base/lock.h"
#include "cm/dispatch.h"
#include "gsi/cm/cm_events.h"
#include "gsi/cm/cm_neighbors.h"
#include "gsi/cm/cm_waiting.h"
#include "link/udp/udp.h"
#include "runtime/schedule.h"
#include "wire/packet.h"

enum { CM_EARLY_MAX = 64 };

struct cm {
    struct process *process;
    struct lock lock; /* of all members below */
    struct manager manager;
    struct cm_neighbors neighbors;
    struct schedule_timer timer;
    uint32_t first_id; /* the first number of the block for communication IDs */
    bool has_stuck;    /* `stuck` is a message for which a link had no room */
    struct dispatch_datagram stuck;
    struct { /* requests from this host that have no listener yet */
        struct dispatch_datagram datagram;
        nanos until; /* when they are rejected */
    } early[CM_EARLY_MAX];
    unsigned early_count;
    struct cm_waiting waiting;
    struct cleanup *cleanup; /* for sessions with other hosts; gsi/cleanup/cleanup.h */
    struct cm_counts counts;
    bool ends; /* the program ends, which destroys its identifiers */
    struct hash_entry *buckets[4 * MANAGER_BUCKETS];
};

/* Returns the process's connection manager, made by the first call, and counts its users. 0 or errno. Thread-safe. */
int cm_join(struct cm **, const struct process_parts *);
void cm_leave(struct cm *);

/* Take and release the lock around a fork of the process. */
void cm_lock(struct process *);
void cm_unlock(struct process *);

/* Forgets the cleanup process, which is the parent's, in the child of a fork. */
void cm_inherit(struct process *);

/* The program ends without closing its channels: destroys all identifiers, so that peers are notified. */
void cm_say_goodbye(struct process *);

/* Makes identifiers that are bound to this device report its removal. Under process->progress. */
void cm_remove_device(struct process *, unsigned device);

/* Makes identifiers that are bound to this device report another address of it. Under process->progress. */
void cm_change_address(struct process *, unsigned device);

/* Frees the connection manager at the end of the process, without a message to peers. */
void cm_destroy(struct process *);

/* Returns true in the child of a fork, and after the process has left the host at its end. The connection manager must
 * not be used then. */
bool cm_is_inherited(const struct cm *);
/* Returns true if the process has left the host at its end. A thread that waits for events then waits until the process
 * ends, as with the kernel. */
bool cm_is_over(const struct cm *);

/* cm_begin takes the lock. cm_end sends what the engine has to send, releases the lock, and schedules the next look. */
void cm_begin(struct cm *);
void cm_end(struct cm *);

/* Takes a packet for queue pair 1 from a process of this host. Under process->progress. */
void cm_receive(struct process *, struct peer *, const struct packet *);

/* Keeps a request from another host that no program of this one listens for: it is rejected if no listener appears in
 * time. False: it can't wait. Under process->progress. */
bool cm_wait(struct process *, const struct udp_arrival *, const struct cm_message *);

enum cm_taken {
    CM_UNKNOWN, /* no program of this process takes it */
    CM_TAKEN,
    CM_ANSWER, /* send `reply`, which belongs to no connection, to the sender */
};

/* Takes a packet from another host. Under process->progress. */
enum cm_taken cm_receive_remote(struct process *, const struct packet *, const struct cm_message *,
                                struct cm_message *reply);
