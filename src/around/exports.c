/* The functions of libibverbs that a preloaded library has in front of the library's own. */
#include "around/begin.h"
#include "around/library/bottom.h"
#include "around/library/names.h"

#define EXPORT __attribute__((visibility("default")))

/* Macros of the header. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define VERB(answer, type, name, work, parameters, arguments)                                                          \
    EXPORT type name parameters                                                                                        \
    {                                                                                                                  \
        const struct calls *calls = begin_around();                                                                    \
        return BOTTOM_CALL(answer, name, calls, arguments);                                                            \
    }
/* An installed header may declare it otherwise, as in abi/exports.c. */
#define NEWER_VERB(answer, type, name, work, parameters, arguments)                                                    \
    type newer_##name parameters __asm__(#name);                                                                       \
    EXPORT type newer_##name parameters                                                                                \
    {                                                                                                                  \
        const struct calls *calls = begin_around();                                                                    \
        return BOTTOM_CALL(answer, name, calls, arguments);                                                            \
    }
#include "calls/verbs.def"

/* After begin.c, which has asked for the library's own functions. The library is there already, as this one needs it.
 */
__attribute__((constructor(102))) static void start(void)
{
    static const struct names_function functions[] = {
#define VERB(answer, type, name, work, parameters, arguments) {#name, (void *)name, NULL},
#define NEWER_VERB(answer, type, name, work, parameters, arguments) {#name, (void *)newer_##name, NULL},
#include "calls/verbs.def"
        {}};
    names_lead("libibverbs.so.1", functions);
}
