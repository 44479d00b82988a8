/* Resolving a service ID to a queue pair of a datagram service (SIDR, IBA volume 1, 12.11): one request and its reply.
 * Pure as connection.h; each side has one of these. */
#ifndef CM_RESOLUTION_H
#define CM_RESOLUTION_H

#include <stdbool.h>

#include "base/nanos.h"
#include "cm/parameters.h"
#include "wire/cm.h"

enum resolution_state {
    RESOLUTION_IDLE,     /* active: it has ended */
    RESOLUTION_SENT,     /* active: the request is out */
    RESOLUTION_RCVD,     /* passive: the program thinks */
    RESOLUTION_ANSWERED, /* passive */
    RESOLUTION_STATES
};

const char *resolution_state_name(enum resolution_state);

struct resolution;

struct resolution_operations {
    /* The active side's end: a reply, or NULL when no answer came. Must not call back into the resolution. */
    void (*resolved)(struct resolution *, const struct cm_message *reply);
};

struct resolution {
    const struct resolution_operations *operations;
    enum resolution_state state;
    bool abandoned; /* the outcome is not reported any more */
    bool pending;   /* something is to be sent */
    uint8_t repeats;
    uint64_t transaction;
    uint32_t request; /* RequestID: ours when active, else the peer's */
    uint64_t service;
    struct cm_parameters parameters; /* of the request, or of the reply */
    struct cm_ece ece;
    uint8_t status; /* of the reply: enum cm_sidr_status */
    nanos deadline; /* when to call resolution_expire */
};

void resolution_initialize(struct resolution *, const struct resolution_operations *);

/* Active: sends the request, and again as often as `repeats`, up to 15, while no answer comes. The private data begins
 * with the header that it needs. */
void resolution_ask(struct resolution *, uint64_t service, uint64_t transaction, uint32_t request,
                    const struct cm_parameters *, unsigned repeats, nanos now);

/* Passive: a request has come. */
void resolution_asked(struct resolution *, const struct cm_message *);

/* Passive: answers with the status; the queue pair counts when it is CM_SIDR_VALID. EINVAL: it is answered already. */
int resolution_answer(struct resolution *, enum cm_sidr_status, const struct cm_parameters *);

/* The owner goes: a request without an answer is rejected. */
void resolution_abandon(struct resolution *);
/* The rejection that a request without an answer is owed if the owner's process ends at this moment; false: nothing.
 * Changes nothing. */
bool resolution_goodbye(const struct resolution *, struct cm_message *);
bool resolution_is_finished(const struct resolution *);

/* The peer's process has ended. */
void resolution_bereave(struct resolution *);

/* A reply when active; the same request again when passive, which then is answered again. */
bool resolution_receive(struct resolution *, const struct cm_message *);
void resolution_expire(struct resolution *, nanos now);
bool resolution_transmit(struct resolution *, struct cm_message *);

#endif
