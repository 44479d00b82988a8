/* The hooks of a file of rules. Each such file of check/rules has one constant with the functions that it wants; all of
 * them are called under the shadow's lock, and end in finding_add. */
#pragma once

#include "calls/forms.h"
#include "calls/questions.h"
#include "check/findings/finding.h"
#include "check/shadow/memory.h"
#include "check/shadow/shadow.h"
#include "diag/diag.h"

/* The subject of a finding about an object, for finding_add; further members of struct finding_about may follow. */
#define HOOKS_ABOUT(breached, object, ...)                                                                             \
    &(struct finding_about)                                                                                            \
    {                                                                                                                  \
        .rule = (breached), .kind = shadow_kind_name((object)->kind), .number = (object)->number,                      \
        .created = &(object)->created, __VA_ARGS__                                                                     \
    }

/* Returns true for devices of vendors' own transports, such as EFA. */
static inline bool hooks_is_vendors(const struct ibv_context *context)
{
    return context->device->transport_type == IBV_TRANSPORT_UNSPECIFIED;
}

/* Memory that work or regions use: it is freed, unmapped, registered or lost. */
struct hooks_memory {
    /* The program frees memory that this work uses. */
    void (*freed)(struct shadow *owner, const struct wqe *);
    /* The program has unmapped memory that this work uses. */
    void (*unmapped)(struct shadow *owner, const struct wqe *);
    /* The library has registered the region, or registered it anew. */
    void (*registered)(struct shadow *mr);
    /* The library has made a CQ or QP, whose queues are memory, too. */
    void (*queued)(struct shadow *);
    /* A region that is still registered has lost memory. */
    void (*given_up)(struct shadow *mr, const struct memory_loss *);
};

/* Threads or peers that wait, and the causes. */
struct hooks_waits {
    /* A thread is about to wait for an event of the channel. */
    void (*waiting)(struct shadow *channel);
    /* A thread has waited long for an event of the channel, and no CQ of the channel was ever armed. */
    void (*stuck)(struct shadow *channel);
    /* A thread has waited long for an event of the channel. Called at least while a refused post is kept. */
    void (*idle)(struct shadow *channel);
    /* A thread has polled the CQ while a refused post is kept; `found`: the poll found entries. */
    void (*polled)(struct shadow *cq, bool found);
    /* A thread has waited long for completions of a QP that has no receive and has refused what its peer sends. */
    void (*missing)(struct shadow *qp, uint64_t naks);
    /* A thread has waited long for completions of a CQ whose last queue pair was destroyed with work under way. */
    void (*gone)(struct shadow *cq);
    /* The queue pair, which had no receive, has refused what its peer sent since the last time. */
    void (*ran_out)(struct shadow *qp, uint64_t naks);
};

/* What the program does with librdmacm. */
struct hooks_cm {
    /* The program moves the identifier to another channel, and nothing has been moved yet. */
    void (*migrating)(struct shadow *cm_id);
    /* The program accepts a connection with this initiator_depth. */
    void (*accepting)(struct shadow *cm_id, uint8_t depth);
    /* The program acknowledges an event again; `first` is the place of its first acknowledgement. */
    void (*acknowledged_again)(const struct place *first);
};

/* The mistakes of a call of builders (ibv_wr_post(3)). */
enum hooks_built {
    HOOKS_STARTED_TWICE,
    HOOKS_NOT_STARTED,
    HOOKS_NOT_ASKED, /* by send_ops_flags */
    HOOKS_NOTHING_BEGUN,
    HOOKS_DATA_TWICE,
};

struct hooks {
    /* Called before the library has the work; `owner` is a QP, or the SRQ of a receive. */
    void (*posted)(struct shadow *owner, struct wqe *);
    /* The library has taken this work, the last of its post, and no thread has polled its completion yet. */
    void (*taken)(struct shadow *owner, const struct wqe *);
    /* A completion, of this work or of later work, shows that this work has ended. `qp` is the QP of the completion,
     * also for a receive of an SRQ. */
    void (*completed)(struct shadow *qp, struct wqe *, const struct calls_completion *);
    /* The library took no more work of this post. `owner` is a QP, or the SRQ of a receive. */
    void (*refused)(struct shadow *owner, const struct shadow_refused *);
    /* A builder was called out of turn; the library has not seen the call yet. */
    void (*built)(struct shadow *qp, enum hooks_built, const char *call);
    /* ibv_modify_qp succeeded. */
    void (*modified)(struct shadow *qp, const struct ibv_qp_attr *, int mask);
    /* The queue pair is connected with a queue pair of this host, which is in RTS, too. */
    void (*met)(struct shadow *qp, const struct shadow_connection *peer);
    /* The program is destroying the object, which no known object uses. The library has not done it yet, and may wait.
     */
    void (*destroying)(struct shadow *);
    /* The program is destroying the queue pair, which has refused this much of what its peers sent. */
    void (*refused_peers)(struct shadow *qp, const struct calls_refused *);
    /* The library has destroyed the object. Work that began after the moment `began` is another object's. */
    void (*destroyed)(struct shadow *, uint64_t began);
    /* The library has destroyed the object while another thread was in this call on it. */
    void (*destroyed_inside)(struct shadow *, const char *call);
    struct hooks_memory memory;
    /* The library has made an address handle. */
    void (*addressed)(struct shadow *ah, const struct ibv_ah_attr *);
    struct hooks_cm cm;
    /* The library has refused a call that makes, changes or destroys an object; it may have given no reason. */
    void (*refused_call)(const char *call, int error, enum reason);
    struct hooks_waits waits;
    /* The program has fetched this asynchronous event. */
    void (*event)(const struct ibv_async_event *);
    /* A queue in memory has a mistake. */
    void (*formed)(const struct shadow *, const struct calls_form_mistake *);
    /* A child of a fork uses an object of its parent. */
    void (*used_by_child)(const struct shadow *, const char *call);
    /* The calling thread is in a signal handler. */
    void (*in_signal)(const char *call);
    /* Two threads are in calls on objects of a thread domain. */
    void (*shared)(struct shadow *td, const char *call);
    /* A call names a destroyed object. */
    void (*used_gone)(const struct shadow *, const char *call);
    /* The program reads a field of an iterator's entry; `flag` is the field's IBV_WC_EX_WITH_, 0 if each CQ has it. */
    void (*read_field)(struct shadow *cq, uint64_t flag, const char *call);
    /* Two threads poll a SINGLE_THREADED CQ at the same time. */
    void (*polled_twice)(struct shadow *cq);
    /* The queue pair is followed no longer, as it is used past the calls. */
    void (*unfollowed)(struct shadow *qp);
    /* The context was closed; NULL: the process ends. */
    void (*ended)(const struct ibv_context *);
};

#define RULES_OF(file) extern const struct hooks rules_##file;
#include "check/rules.def"
