/* The functions of libibverbs that a preloaded library has in front of the library's own. */
#include "around/begin.h"

#define EXPORT __attribute__((visibility("default")))

/* Macros of the header. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define VERB(answer, type, name, work, parameters, arguments)                                                          \
    EXPORT type name parameters                                                                                        \
    {                                                                                                                  \
        return calls_get(begin_around(), name) arguments;                                                              \
    }
/* An installed header may declare it otherwise, as in abi/exports.c. */
#define NEWER_VERB(answer, type, name, work, parameters, arguments)                                                    \
    type newer_##name parameters __asm__(#name);                                                                       \
    EXPORT type newer_##name parameters                                                                                \
    {                                                                                                                  \
        return calls_get(begin_around(), name) arguments;                                                              \
    }
#include "calls/verbs.def"
