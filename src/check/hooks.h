/* The hooks of a file of rules. Each such file of check/rules has one constant with the functions that it wants; all of
 * them are called under the shadow's lock, and end in finding_add. */
#ifndef CHECK_HOOKS_H
#define CHECK_HOOKS_H

#include <stddef.h>

#include "check/shadow.h"

/* A completion that the program has polled. */
struct hooks_completion {
    uint64_t wr_id;
    uint32_t qp_number, length;
    enum ibv_wc_status status;
    enum ibv_wc_opcode opcode;
};

struct hooks {
    /* `owner` is a QP, or the SRQ of a receive. Before the library has the work. */
    void (*posted)(struct shadow *owner, struct wqe *);
    /* The library has it, the last of its post, and no thread has polled its completion yet. */
    void (*taken)(struct shadow *owner, const struct wqe *);
    /* The program has been informed that the work ended, if only by a later completion (then that one is given). `qp`
     * is the QP of the completion, also where the receive is of an SRQ. */
    void (*completed)(struct shadow *qp, struct wqe *, const struct hooks_completion *);
    /* The library took no more work of this post: errno. */
    void (*refused)(struct shadow *qp, int error);
    /* ibv_modify_qp succeeded. */
    void (*modified)(struct shadow *qp, const struct ibv_qp_attr *, int mask);
    /* It is connected with a queue pair of this host, which is in RTS, too. */
    void (*met)(struct shadow *qp, const struct shadow_connection *peer);
    /* The program destroys it, and nothing uses it that is known; the library has not yet, and may wait. */
    void (*destroying)(struct shadow *);
    /* The library has destroyed it. Work that began behind the moment `began` is of another object. */
    void (*destroyed)(struct shadow *, uint64_t began);
    /* Likewise, and another thread was in this call on it. */
    void (*destroyed_inside)(struct shadow *, const char *call);
    /* The program frees memory that this work uses. */
    void (*freed)(struct shadow *owner, const struct wqe *);
    /* Likewise, and it has gone already. */
    void (*unmapped)(struct shadow *owner, const struct wqe *);
    /* The library has registered it, or registered it anew. */
    void (*registered)(struct shadow *mr);
    void (*addressed)(struct shadow *ah, const struct ibv_ah_attr *);
    /* The program moves it to another channel, and nothing has been moved yet. */
    void (*migrating)(struct shadow *cm_id);
    /* The program accepts a connection with this initiator_depth. */
    void (*accepting)(struct shadow *cm_id, uint8_t depth);
    /* The library has refused a call that makes, changes or destroys an object. */
    void (*refused_call)(const char *call, int error);
    /* A thread is about to wait for an event of the channel; it has waited for long, and no CQ of it was ever armed. */
    void (*waiting)(struct shadow *channel);
    void (*stuck)(struct shadow *channel);
    /* So many messages for the queue pair have found no receive since the last time. */
    void (*ran_out)(struct shadow *qp, uint64_t messages);
    /* A child of a fork uses an object of its parent. */
    void (*used_by_child)(const struct shadow *, const char *call);
    /* The calling thread is in a signal handler. */
    void (*in_signal)(const char *call);
    /* Two threads are in calls on objects of a thread domain. */
    void (*shared)(struct shadow *td, const char *call);
    /* A call names an object that is gone. */
    void (*used_gone)(const struct shadow *, const char *call);
    /* A field of the entry that an iterator shows; `flag` of IBV_WC_EX_WITH_, 0: each CQ has it. */
    void (*read_field)(struct shadow *cq, uint64_t flag, const char *call);
    /* Two threads poll a SINGLE_THREADED CQ at the same time. */
    void (*polled_twice)(struct shadow *cq);
    /* The process ends, or the context of these objects is closed (NULL: all). */
    void (*ended)(const struct ibv_context *);
};

#define RULES_OF(file) extern const struct hooks rules_##file;
#include "check/rules.def"

/* Calls the function of each file that has one. */
#define HOOKS_CALL(hook, ...)                                                                                          \
    do {                                                                                                               \
        for (hooks_function *const *hooks_at = hooks_lists[HOOKS_PLACE(hook)]; *hooks_at; hooks_at++)                  \
            ((__typeof__(((struct hooks *)NULL)->hook))*hooks_at)(__VA_ARGS__);                                        \
    } while (0)

/* For each function of struct hooks those of all files, and NULL behind them. Before the program runs. */
void hooks_begin(void);

/* The library has refused a call: errno. Takes the lock, and leaves errno as it is. */
void hooks_refused(const char *call, int error);

/* The caller is here. Takes the lock where it is in a signal handler. */
void hooks_see_place(const struct place *, const char *call);

/* A call of the data path names this object. Takes the lock in children of forks. */
void hooks_see_use_in_child(enum shadow_kind, const void *handle, const char *call);
static inline void hooks_see_use(enum shadow_kind kind, const void *handle, const char *call)
{
    if (__builtin_expect(shadow_is_child, 0))
        hooks_see_use_in_child(kind, handle, call);
}

/* Returns true if this is the address of an object that is gone, and of no living one. The hooks of rules are called
 * then. Takes the lock. */
bool hooks_is_gone(enum shadow_kind, const void *handle, const char *call);

typedef void hooks_function(void);

enum {
    HOOKS_FILES = 0
#define RULES_OF(file) +1
#include "check/rules.def"
};

#define HOOKS_PLACE(hook) (offsetof(struct hooks, hook) / sizeof(hooks_function *))
extern hooks_function *hooks_lists[sizeof(struct hooks) / sizeof(hooks_function *)][HOOKS_FILES + 1];

#endif
