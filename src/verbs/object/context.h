/* Contexts, which own the other objects. verbs/context/context_open.h opens and closes them. */
#pragma once

#include <sys/types.h>

#include "calls/calls.h"
#include "verbs/object/async.h"
#include "verbs/object/object.h"

/* The identity of the file of a context's cmd_fd. */
struct context_identity {
    dev_t device;
    ino_t inode;
};

struct context {
    struct verbs_context ibv;
    struct context_identity identity; /* the same for all contexts that were imported from each other */
    struct process *process;
    const struct device *device;
    struct async async;
    struct object_list objects[OBJECT_KINDS];
    uint32_t counts[OBJECT_KINDS];
    struct object_list imports; /* imported names of the family's objects */
    bool closing;               /* objects that end now were left by the program, which may still name them */
    struct object_list left; /* destroyed objects that the program left; their memory lives as long as the context's */
    LIST_ENTRY(context) siblings;
    struct calls_holder calls; /* its operations */
};

static inline struct context *context_of(struct ibv_context *ibv)
{
    return (struct context *)((char *)ibv - offsetof(struct context, ibv.context));
}

static inline bool context_is_family(const struct context *one, const struct context *other)
{
    return one->identity.device == other->identity.device && one->identity.inode == other->identity.inode;
}
