/* The connection manager of this process: the owner of the engine in src/cm. It gives the engine memory, time,
 * addresses, the host's ports and devices, and carries its messages: to processes of this host in frames for queue pair
 * 1, to other hosts in datagrams.
 *
 * Commands run between cm_begin and cm_end, under one lock, whose place in the order is behind process->progress and
 * before those of the node and the links. */
#ifndef GSI_CM_H
#define GSI_CM_H

#include "base/lock.h"
#include "cm/dispatch.h"
#include "gsi/cm_events.h"
#include "gsi/cm_neighbors.h"
#include "gsi/cm_waiting.h"
#include "link/udp/udp.h"
#include "runtime/schedule.h"
#include "wire/packet.h"

enum { CM_EARLY_MAX = 64 };

struct cm {
    struct process *process;
    struct lock lock; /* all below */
    struct manager manager;
    struct cm_neighbors neighbors;
    struct schedule_timer timer;
    uint32_t first_id; /* of the block of numbers that communication IDs are made of */
    bool has_stuck;    /* a message that a link had no room for */
    struct dispatch_datagram stuck;
    struct { /* requests of this host without a listener yet */
        struct dispatch_datagram datagram;
        nanos until; /* then they are rejected */
    } early[CM_EARLY_MAX];
    unsigned early_count;
    struct cm_waiting waiting;
    struct cleanup *cleanup; /* for sessions with other hosts; gsi/cleanup/cleanup.h */
    struct cm_counts counts;
    bool ends; /* the program ends, which destroys its identifiers */
    struct hash_entry *buckets[4 * MANAGER_BUCKETS];
};

/* The process's, made by the first call; counts its users. 0 or errno. Thread-safe. */
int cm_join(struct cm **, const struct process_parts *);
void cm_leave(struct cm *);

/* For the moment of a fork. */
void cm_lock(struct process *);
void cm_unlock(struct process *);

/* In the child: the cleanup process is its parent's. */
void cm_inherit(struct process *);

/* The program ends without closing its channels: destroys all identifiers, so that peers are notified. */
void cm_say_goodbye(struct process *);

/* The device of this number goes, which identifiers that are bound to it report. Under process->progress. */
void cm_remove_device(struct process *, unsigned device);

/* The process ends: everything of it goes, without a word. */
void cm_destroy(struct process *);

/* Returns true if this is a child's copy after a fork, or the process has left the host at its end. Then no part of it
 * may be used. */
bool cm_is_inherited(const struct cm *);
/* Returns true in the latter case. A thread that waits for events then waits until the process is no more, as with the
 * kernel. */
bool cm_is_over(const struct cm *);

/* Takes the lock; gives it back when what the engine has to send is sent, and its timers are seen to. */
void cm_begin(struct cm *);
void cm_end(struct cm *);

/* A packet for queue pair 1 from a process of this host. Under process->progress. */
void cm_receive(struct process *, struct peer *, const struct packet *);

/* A request from another host that no program on this one listens for: waits for one that does, and is rejected if none
 * comes. False: it can't wait. Likewise. */
bool cm_wait(struct process *, const struct udp_arrival *, const struct cm_message *);

enum cm_taken {
    CM_UNKNOWN, /* no process here has to do with it */
    CM_TAKEN,
    CM_ANSWER, /* `reply` is to be sent to where it came from; it belongs to no connection */
};

/* One from another host. Likewise. */
enum cm_taken cm_receive_remote(struct process *, const struct packet *, const struct cm_message *,
                                struct cm_message *reply);

#endif
