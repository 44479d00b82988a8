/* The subject of a call is the object that reports name together with the call. */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

#include "calls/command.h"
#include "calls/objects.def"

struct calls_subject {
    const char *kind; /* "qp"; NULL: the call is about no object */
    uint32_t number;  /* a queue pair's number, else the handle; 0: programs see no number */
    uintptr_t object; /* the object's address in the program */
};

/* The subject among the arguments of a call: the first argument that points to an object, which is one of the first
 * two. Ask before a call that may destroy the object. */
#define CALLS_SUBJECT(...) CALLS_SUBJECT_OF(__VA_ARGS__, 0, 0)
#define CALLS_SUBJECT_OF(first, second, ...) calls_subject_first(CALLS_SUBJECT_IF(first), CALLS_SUBJECT_IF(second))

static inline struct calls_subject calls_subject_first(struct calls_subject one, struct calls_subject other)
{
    return one.kind ? one : other;
}

/* Each struct that programs have, how reports name it, and its number: first the objects, then other structs. */
#define CALLS_SUBJECT_OBJECT(kind, type, word, where) CALLS_SUBJECT_KIND(type, word, where)
#define CALLS_SUBJECT_ALIKE(kind)
#define CALLS_SUBJECTS                                                                                                 \
    CALLS_OBJECTS(CALLS_SUBJECT_OBJECT, CALLS_SUBJECT_ALIKE)                                                           \
    CALLS_SUBJECT_KIND(ibv_device, "device", 0)                                                                        \
    CALLS_SUBJECT_KIND(ibv_context, "context", (uint32_t)at->cmd_fd)                                                   \
    CALLS_SUBJECT_KIND(ibv_cq_ex, "cq", at->handle)                                                                    \
    CALLS_SUBJECT_KIND(ibv_qp_ex, "qp", at->qp_base.qp_num)                                                            \
    CALLS_SUBJECT_KIND(newer_buf, "buf", 0)                                                                            \
    CALLS_SUBJECT_KIND(ucma_call, "identifier", at->object)

#define CALLS_SUBJECT_KIND(type, word, where)                                                                          \
    static inline struct calls_subject calls_subject_##type(uintptr_t argument)                                        \
    {                                                                                                                  \
        struct type *at = (struct type *)argument;                                                                     \
        return at ? (struct calls_subject){word, where, argument} : (struct calls_subject){word, 0};                   \
    }
CALLS_SUBJECTS
#undef CALLS_SUBJECT_KIND

static inline struct calls_subject calls_subject_none(uintptr_t argument)
{
    return (struct calls_subject){NULL, 0};
}

#define CALLS_SUBJECT_KIND(type, word, where) struct type * : calls_subject_##type,
#define CALLS_SUBJECT_IF(argument)                                                                                     \
    _Generic((argument), CALLS_SUBJECTS default : calls_subject_none)((uintptr_t)(argument))
