/* libefa.so.1 as programs find it: libibverbs does the calls, so that they pass its layers. */
#include <infiniband/efadv.h>

#define EXPORT __attribute__((visibility("default")))

#define VENDOR(answer, type, name, parameters, arguments)                                                              \
    type softverbs_##name parameters;                                                                                  \
    type name parameters;                                                                                              \
    EXPORT type name parameters                                                                                        \
    {                                                                                                                  \
        return softverbs_##name arguments;                                                                             \
    }
#include "calls/efa.def"

#define PART(type, name, parameters, arguments)                                                                        \
    type softverbs_##name parameters;                                                                                  \
    type name parameters;                                                                                              \
    EXPORT type name parameters                                                                                        \
    {                                                                                                                  \
        return softverbs_##name arguments;                                                                             \
    }
#include "calls/efa.def"
