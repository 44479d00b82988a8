/* Resolving a service ID to a queue pair of a datagram service (SIDR, IBA volume 1, 12.11): one request and its reply.
 * Pure as connection.h; each side has a struct resolution. */
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
    uint32_t request; /* RequestID: ours when active, else the peer's */
    uint64_t service;
    struct cm_parameters parameters; /* the request's, or the reply's */
    struct cm_ece ece;
    uint8_t status; /* the reply's: enum cm_sidr_status */
    nanos deadline; /* when to call resolution_expire */
};

void resolution_initialize(struct resolution *, const struct resolution_operations *);

/* Active: sends the request, and repeats it up to `repeats` times, at most 15, until an answer arrives. The private
 * data begins with the header that the request needs. */
void resolution_ask(struct resolution *, uint64_t service, uint64_t transaction, uint32_t request,
                    const struct cm_parameters *, unsigned retries, nanos now);

/* Passive: takes a request. */
void resolution_asked(struct resolution *, const struct cm_message *);

/* Passive: answers with the status; the queue pair counts only with CM_SIDR_VALID. EINVAL: it is answered already. */
int resolution_answer(struct resolution *, enum cm_sidr_status, const struct cm_parameters *);

/* The owner is destroyed: a request without an answer is rejected. */
void resolution_abandon(struct resolution *, nanos now);
/* Writes the rejection that an unanswered request needs if the owner's process ends now; false: there is none. Changes
 * nothing. */
bool resolution_goodbye(const struct resolution *, struct cm_message *);
bool resolution_is_finished(const struct resolution *);

/* The peer's process has ended. */
void resolution_bereave(struct resolution *, nanos now);

/* Takes a reply when active; when passive the same request again, which then is answered again. */
bool resolution_receive(struct resolution *, const struct cm_message *, nanos now);
void resolution_expire(struct resolution *, nanos now);
bool resolution_transmit(struct resolution *, struct cm_message *);
