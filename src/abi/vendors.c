/* The exports of libibverbs for the libraries of vendors, which pass their calls on (lib/efa): softverbs_ with the name
 * of the call. */
#include "abi/around.h"
#include "abi/bottom.h"
#include "abi/export.h"
#include "efa/efa.h"

void bottom_of_vendors(struct calls *calls)
{
#define VENDOR(outcome, type, name, parameters, arguments) calls->name = own_##name;
#include "calls/efa.def"
}

#define VENDOR(outcome, type, name, parameters, arguments)                                                              \
    type softverbs_##name parameters;                                                                                  \
    EXPORT type softverbs_##name parameters                                                                            \
    {                                                                                                                  \
        const struct calls *around = calls_around();                                                                   \
        return AROUND_##outcome(#name, around ? calls_get(around, name) arguments : own_##name arguments);              \
    }
#include "calls/efa.def"

#define PART(type, name, parameters, arguments)                                                                        \
    type softverbs_##name parameters;                                                                                  \
    EXPORT type softverbs_##name parameters                                                                            \
    {                                                                                                                  \
        return own_##name arguments;                                                                                   \
    }
#include "calls/efa.def"
