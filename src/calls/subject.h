/* What a call is about: the object that a report names beside the call. */
#ifndef CALLS_SUBJECT_H
#define CALLS_SUBJECT_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "calls/command.h"

struct calls_subject {
    const char *kind; /* "qp"; NULL: of no object */
    uint32_t number;  /* of a queue pair its number, of others the handle; 0: it has none that programs see */
};

/* Of the arguments of a call, in parentheses as verbs.def has them: the first that points to an object, which is one of
 * the first two. Before the call, if that may destroy the object. */
#define CALLS_SUBJECT(...) CALLS_SUBJECT_OF(__VA_ARGS__, 0, 0)
#define CALLS_SUBJECT_OF(first, second, ...) calls_subject_first(CALLS_SUBJECT_IF(first), CALLS_SUBJECT_IF(second))

static inline struct calls_subject calls_subject_first(struct calls_subject one, struct calls_subject other)
{
    return one.kind ? one : other;
}

/* Each kind, what it is named, and where its number stands. */
#define CALLS_SUBJECTS                                                                                                 \
    CALLS_SUBJECT_KIND(ibv_device, "device", 0)                                                                        \
    CALLS_SUBJECT_KIND(ibv_context, "context", (uint32_t)at->cmd_fd)                                                   \
    CALLS_SUBJECT_KIND(ibv_pd, "pd", at->handle)                                                                       \
    CALLS_SUBJECT_KIND(ibv_td, "td", 0)                                                                                \
    CALLS_SUBJECT_KIND(ibv_xrcd, "xrcd", 0)                                                                            \
    CALLS_SUBJECT_KIND(ibv_mr, "mr", at->handle)                                                                       \
    CALLS_SUBJECT_KIND(ibv_mw, "mw", at->handle)                                                                       \
    CALLS_SUBJECT_KIND(ibv_dm, "dm", *newer_dm_handle(at))                                                             \
    CALLS_SUBJECT_KIND(newer_dmah, "dmah", 0)                                                                          \
    CALLS_SUBJECT_KIND(newer_buf, "buf", 0)                                                                            \
    CALLS_SUBJECT_KIND(ibv_comp_channel, "channel", (uint32_t)at->fd)                                                  \
    CALLS_SUBJECT_KIND(ibv_cq, "cq", at->handle)                                                                       \
    CALLS_SUBJECT_KIND(ibv_cq_ex, "cq", at->handle)                                                                    \
    CALLS_SUBJECT_KIND(newer_comp_cntr, "comp_cntr", at->handle)                                                       \
    CALLS_SUBJECT_KIND(ibv_srq, "srq", at->handle)                                                                     \
    CALLS_SUBJECT_KIND(ibv_qp, "qp", at->qp_num)                                                                       \
    CALLS_SUBJECT_KIND(ibv_qp_ex, "qp", at->qp_base.qp_num)                                                            \
    CALLS_SUBJECT_KIND(ibv_ah, "ah", at->handle)                                                                       \
    CALLS_SUBJECT_KIND(ibv_wq, "wq", at->wq_num)                                                                       \
    CALLS_SUBJECT_KIND(ibv_rwq_ind_table, "ind_table", (uint32_t)at->ind_tbl_handle)                                   \
    CALLS_SUBJECT_KIND(ibv_flow, "flow", at->handle)                                                                   \
    CALLS_SUBJECT_KIND(ibv_counters, "counters", 0)                                                                    \
    CALLS_SUBJECT_KIND(ucma_call, "identifier", at->object)

#define CALLS_SUBJECT_KIND(type, word, where)                                                                          \
    static inline struct calls_subject calls_subject_##type(uintptr_t argument)                                        \
    {                                                                                                                  \
        struct type *at = (struct type *)argument;                                                                     \
        return at ? (struct calls_subject){word, where} : (struct calls_subject){word, 0};                             \
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

#endif
