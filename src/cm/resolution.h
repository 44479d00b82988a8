/* Resolving a service ID to a queue pair of a datagram service (SIDR, IBA volume 1, 12.11): one request and its reply.
 * Each side has a struct resolution. Pure, as connection.h says. */
#pragma once

#include <stdbool.h>

#include "base/nanos.h"
#include "cm/queue_pair/parameters.h"
#include "wire/cm/cm.h"

enum resolution_state {
    RESOLUTION_IDLE,     /* active: ended */
    RESOLUTION_SENT,     /* active: the request is sent */
    RESOLUTION_RCVD,     /* passive: the program has not answered yet */
    RESOLUTION_ANSWERED, /* passive: answered */
    RESOLUTION_STATES
};

const char *resolution_state_name(enum resolution_state);

struct resolution;

struct resolution_operations {
    /* Reports the active side's end: a reply, or NULL without an answer. Must not call back into the resolution. */
    void (*resolved)(struct resolution *, const struct cm_message *reply);
};

struct resolution {
    const struct resolution_operations *operations;
    enum resolution_state state;
    bool abandoned; /* the outcome is no longer reported */
    bool pending;   /* a message is to be sent */
    uint8_t retries;
    uint64_t transaction;
    uint32_t request; /* RequestID: active, ours; passive, the peer's */
    uint64_t service;
    struct cm_parameters parameters; /* the request's, or the reply's */
    struct cm_ece ece;
    uint8_t status; /* the reply's: enum cm_sidr_status */
    nanos deadline; /* when to call resolution_expire */
};

void resolution_initialize(struct resolution *, const struct resolution_operations *);

/* Active: sends the request, and repeats it up to `retries` times, at most 15, until an answer arrives. The private
 * data begins with the header that the request needs. */
void resolution_ask(struct resolution *, uint64_t service, uint64_t transaction, uint32_t request,
                    const struct cm_parameters *, unsigned retries, nanos now);

/* Passive: takes a request. */
void resolution_asked(struct resolution *, const struct cm_message *);

/* Passive: answers with the status; the queue pair counts only with CM_SIDR_VALID. EINVAL: the state is not RCVD. */
int resolution_answer(struct resolution *, enum cm_sidr_status, const struct cm_parameters *);

/* Called when the owner is destroyed: rejects a request that has no answer yet. */
void resolution_abandon(struct resolution *, nanos now);
/* Writes the rejection that a request without an answer needs if the owner's process ends now; false: no such request.
 * Changes nothing. */
bool resolution_goodbye(const struct resolution *, struct cm_message *);
bool resolution_is_finished(const struct resolution *);

/* Called when the peer's process has ended: no answer will arrive. */
void resolution_bereave(struct resolution *, nanos now);

/* Takes a reply (active), or the same request again, which is then answered again (passive). False: it changed
 * nothing. */
bool resolution_receive(struct resolution *, const struct cm_message *, nanos now);
void resolution_expire(struct resolution *, nanos now);
bool resolution_transmit(struct resolution *, struct cm_message *);
