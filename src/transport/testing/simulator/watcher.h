/* A test that takes part in the runs of the simulator: it has their record, does the work of an owner with each call
 * of an engine, and carries the packets. It is for tests of the layers above, so it has no type of the simulator;
 * each endpoint is a number below WATCHED_MOST. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"
#include "transport/owner.h"
#include "wire/op.h"

enum { WATCHED_MOST = 16 };

struct world;

/* An endpoint, at this virtual time. */
struct watched {
    nanos now;
    uint32_t index, number;
    enum service service;
};

struct watcher {
    const struct watcher_operations *operations;
    struct world *world; /* of the run, for watcher_carry */
    bool disturbs;       /* it loses, delays, reorders or doubles packets */
};

/* Each is called when the owner of a queue pair does its work, before the simulator judges. */
struct watcher_operations {
    /* The simulator's own record of events (world_note). */
    void (*noted)(struct watcher *, const struct watched *, const char *what, uint64_t a, uint64_t b);

    /* The engine has transmitted this packet, and `along` with it. `fresh`: the first PSN that had not been sent
     * before (reliable services). */
    void (*transmitted)(struct watcher *, const struct watched *, const struct packet *, uint32_t along,
                        uint32_t fresh);

    /* The engine is about to receive this packet. */
    void (*arrived)(struct watcher *, const struct watched *, const struct packet *);

    /* The calls of struct owner_operations. */
    void (*sent)(struct watcher *, const struct watched *, const struct send_wqe *, enum ibv_wc_status);
    void (*received)(struct watcher *, const struct watched *, const struct recv_wqe *, const struct recv_cqe *);
    void (*note)(struct watcher *, const struct watched *, enum event, uint64_t a, uint64_t b);
    void (*dropped)(struct watcher *, const struct watched *, const struct packet *, enum reason);
    void (*entered)(struct watcher *, const struct watched *, enum ibv_qp_state from, enum ibv_qp_state to);

    /* `due`: when the watcher sends a packet that it holds back; or NANOS_NEVER. `expired`: the call at that time. */
    nanos (*due)(struct watcher *);
    void (*expired)(struct watcher *, nanos now);
};

/* Runs a seed. `complaint` gets the first fault, or "". */
void watcher_run(struct watcher *, uint64_t seed, char complaint[256]);

/* Sends the packet of this endpoint over the network of the simulator, which may lose it, too. */
void watcher_carry(struct watcher *, uint32_t index, const struct packet *, uint32_t along);
