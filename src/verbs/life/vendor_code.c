#include "verbs/life/vendor_code.h"

#include <stddef.h>

#include "config/settings.h"
#include "events/words.h"
#include "profile/profile.h"
#include "profile/vendors.h"

/* Reasons whose status has several codes; another status has one, or its first one is meant. */
static const struct {
    uint16_t reason;
    uint8_t code;
} codes[] = {
    {REASON_WORK_UNSUPPORTED, 3},
    {REASON_PEER_UNHEARD, 15},
};

/* EFA's code of a failure that its list does not have. */
enum { OTHER = 2 };

uint32_t vendor_code(enum ibv_wc_status status, enum reason reason)
{
    uint32_t code = OTHER;
    if (!profile_is_efa(setting_profile()))
        return reason;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].reason == reason)
            return codes[i].code;
    vendors_code("efa", words_status(status) + sizeof "IBV_WC_" - 1, &code);
    return code;
}
