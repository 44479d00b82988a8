/* Two ends of a connection on which nothing is wrong, for tests. */
#pragma once

#include <string.h>

#include "diagnose/diagnose.h"

enum { OWN = 0x21, PEERS = 0x34, PSN = 500 };

#define WHO "process 4711 (server)"

/* All that is known of a connection, on which nothing is wrong at first; a case makes one thing another. */
struct scene {
    struct facts_qp own, peer;
    struct facts_cq cq;
    struct facts_srq srq, peer_srq;
    struct facts_identifier id;
    struct known known;
};

static inline struct fact_number number(uint64_t value)
{
    return (struct fact_number){value, true};
}

/* Two queue pairs that are connected and have nothing to do. */
static inline void begin(struct scene *scene)
{
    struct facts_qp own = {.type = "RC", .state = "RTS", .device = "soft0", .number = number(OWN)};
    memset(scene, 0, sizeof *scene);
    own.timeout = own.send_posted = own.recv_posted = own.outstanding = number(0);
    own.send_wr = number(8);
    own.sq_psn = own.rq_psn = number(PSN);
    scene->own = scene->peer = own;
    scene->own.peer_qp = scene->peer.number = number(PEERS);
    scene->peer.peer_qp = number(OWN);
    scene->known = (struct known){
        .own = &scene->own, .peer = &scene->peer, .cq = &scene->cq, .process = WHO, .place = "this directory"};
    scene->known.posting.own = scene->known.posting.peer = "ibv_post_recv";
    scene->known.since.still = scene->known.since.unpolled = scene->known.since.stuck = scene->known.counts.heard =
        true;
}
