#include "verbs/life/vendor_code.h"

#include <stddef.h>

#include "config/settings.h"
#include "events/words.h"
#include "profile/profile.h"
#include "profile/vendors.h"

/* Codes of EFA that one reason has. Another reason has the first code of its status. */
static const struct {
    uint16_t reason;
    uint8_t code;
} codes[] = {
    {REASON_WORK_UNSUPPORTED, 3},
    {REASON_MESSAGE_TOO_LONG, 6},
    {REASON_REMOTE_ACCESS, 7},
    {REASON_PEER_FORGOT, 8},
    {REASON_PEER_NO_QP, 9},
    {REASON_RNR_EXCEEDED, 10},
    {REASON_REMOTE_INVALID_REQUEST, 11},
    {REASON_BAD_RESPONSE, 12},
    {REASON_RETRY_EXCEEDED, 13},
    {REASON_PEER_NO_ADDRESS, 14},
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

enum reason vendor_reason(uint32_t code)
{
    if (!profile_is_efa(setting_profile()))
        return (enum reason)code;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            return (enum reason)codes[i].reason;
    return REASON_NONE;
}
