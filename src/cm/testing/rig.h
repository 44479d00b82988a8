/* Two hosts with a manager each, for scripts: messages wait on the wire until the script lets them through, and may be
 * lost, doubled or changed there. Time passes only when the script lets it. */
#pragma once

#include "cm/service.h"
#include "cm/testing/host.h"

enum { RIG_WIRE = 64, RIG_PORT = 7174 };

struct rig {
    struct host a, b;
    nanos now;
    struct dispatch_datagram wire[RIG_WIRE];
    struct host *to[RIG_WIRE];
    unsigned count, sent[CM_APR + 1];
    const struct script *script;  /* of a table (steps.h) */
    const struct cm_event *last; /* that a step has fetched */
};

int rig_make(void **state);
int rig_free(void **state); /* destroys nothing: leftovers fail */

struct cm_address rig_address(const struct host *, uint16_t port);

/* Make a listener, and an active identifier whose route to it is resolved; their events are taken. */
struct identifier *rig_listen(struct host *, uint16_t port);
struct identifier *rig_resolve(struct host *, uint16_t port);

struct cm_parameters rig_parameters(uint32_t qpn);

/* Moves what managers have to send onto the wire. */
void rig_pull(struct rig *);
/* The next message on the wire; fails without one, or if it is of another kind. */
struct dispatch_datagram *rig_next(struct rig *, enum cm_attribute);
void rig_pass(struct rig *, enum cm_attribute); /* delivers it */
void rig_lose(struct rig *, enum cm_attribute);
void rig_twice(struct rig *, enum cm_attribute); /* delivers it and keeps it */
void rig_quiet(struct rig *);                    /* nothing is on the wire */
/* Delivers until nothing is on the wire. */
void rig_settle(struct rig *);

/* Lets time pass, step by step from deadline to deadline; datagrams that are sent meanwhile stay on the wire. */
void rig_wait(struct rig *, nanos);

/* The next event of the host; fails without one, or if it is of another kind. Valid until the next call. */
const struct cm_event *rig_event(struct host *, enum cm_event_kind);
void rig_no_event(struct host *);

/* An established connection; both identifiers' events are taken. */
struct connected {
    struct identifier *listener, *active, *passive;
};
struct connected rig_connect(struct rig *);

/* Steps of rig_connect: b listens and a's request is on the wire; it arrives; it is accepted; the reply is confirmed.
 */
struct connected rig_start(struct rig *);
void rig_arrive(struct rig *, struct connected *);
void rig_accept(struct rig *, struct connected *);
void rig_confirm(struct rig *, struct connected *);

/* Destroys the identifiers, and lets time pass until nothing is left of them. */
void rig_end(struct rig *, struct connected *);
