#include "gsi/cm/cm_bindable.h"

#include <errno.h>
#include <string.h>

#include "config/config.h"
#include "config/config_net.h"
#include "events/refusal.h"
#include "events/words.h"

/* The device on the interface that has this address; NULL: no device. */
static const struct device *find_interface(const union ibv_gid *gid)
{
    static struct interface interface; /* too large for a stack; callers have the manager's lock */
    CONFIG_EACH (device) {
        if (!device->interface[0] || !config_read_interface(&interface, device->interface))
            continue;
        for (unsigned j = 0; j < interface.address_count; j++)
            if (!memcmp(&interface.addresses[j], gid, sizeof *gid))
                return device;
    }
    return NULL;
}

static bool all_are_on_networks(void)
{
    CONFIG_EACH (device)
        if (!device->interface[0])
            return false;
    return true;
}

bool cm_bindable(const struct cm_address *address)
{
    union ibv_gid gid;
    char text[WORDS_GID];
    memcpy(&gid, address->gid, sizeof gid);
    if (cm_is_loopback(address))
        return true;
    const struct device *device = find_interface(&gid);
    words_gid(&gid, text);
    if (device)
        refuse_offer(ENODEV, REASON_CM_NO_GID, "%s is an address of %s, which is device %s's interface", text,
                     device->interface, device->name);
    else if (all_are_on_networks())
        refuse_offer(ENODEV, REASON_CM_NO_GID, "%s is an address of an interface that no device is on", text);
    else
        return true;
    return false;
}
