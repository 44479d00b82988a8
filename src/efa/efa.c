#include "efa/efa.h"

#include <errno.h>
#include <string.h>

#include "base/result.h"
#include "config/settings.h"
#include "events/refusal.h"
#include "profile/profile.h"

/* Programs ask each device by efadv_query_device whether it is one. */
static int refuse_device(const char *call)
{
    const struct profile *profile = setting_profile();
    const char *name = profile ? profile->name : "none";
    if (!strcmp(call, "efadv_query_device"))
        return refuse_offer(EOPNOTSUPP, REASON_NOT_EFA, "profile %s", name);
    return refuse(EOPNOTSUPP, REASON_NOT_EFA, "profile %s", name);
}

#define VENDOR(outcome, type, name, parameters, arguments)                                                              \
    type own_##name parameters                                                                                         \
    {                                                                                                                  \
        RESULT_REFUSE_##outcome(refuse_device(#name));                                                                  \
    }
#include "calls/efa.def"
