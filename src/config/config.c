#include "config/config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adverse/plan.h"
#include "base/text/text.h"
#include "config/complaint.h"
#include "config/config_net.h"
#include "config/device_state.h"
#include "config/identify.h"
#include "config/local_gid.h"
#include "config/settings.h"
#include "diag/log.h"
#include "profile/profile.h"

static bool infiniband; /* the devices' link layer */
static struct device devices[DEVICES_MAX];
static unsigned device_count;

const char *config_problem(void)
{
    config_device(0);
    return complaint_get(0);
}

void config_warn(void)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (!config_problem() || atomic_flag_test_and_set(&warned))
        return;
    const char *each;
    for (unsigned i = 0; (each = complaint_get(i)); i++)
        log_always("%s%s", each, each[strlen(each) - 1] == '.' ? " It is ignored." : "; it is ignored");
}

bool config_local_gid(const union ibv_gid *gid)
{
    static const uint8_t mapped_loopback[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
    struct device other = {0};
    if (!infiniband && !memcmp(gid->raw, mapped_loopback, sizeof mapped_loopback))
        return true;
    CONFIG_EACH (device)
        if (device_state_find(device_now(device), gid) >= 0)
            return true;
    /* another process may have configured more devices; the link-local GIDs of a host differ in the last octet only */
    identify_device(&other, 0, infiniband);
    return !memcmp(gid->raw, other.start.gids[0].raw, 15) && gid->raw[15] < DEVICES_MAX;
}

/* Checks a name that becomes part of names of files, of JSON and of output. */
static bool is_device_name(const char *name, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    return length && length < sizeof devices->name && *name != '.' && strspn(name, letters) >= length;
}

/* Tools and /sys know devices by their names. */
static bool is_named_twice(const char *name, size_t length)
{
    for (unsigned i = 0; i < device_count; i++)
        if (!strncmp(devices[i].name, name, length) && !devices[i].name[length])
            return true;
    return false;
}

/* The largest MTU of the profile's port, in bytes. */
static uint32_t largest_mtu(void)
{
    const struct profile *profile = setting_profile();
    return profile ? 128u << profile_value(profile, PROFILE_max_mtu, IBV_MTU_4096) : limits_standard.max_mtu;
}

/* The adverse adapter leaves the first two places of the GID table empty if the table is long enough. */
static unsigned first_gid(void)
{
    enum { HOLES = 2, LEAST = HOLES + 2 };
    const struct profile *profile = setting_profile();
    uint64_t length = profile ? profile_value(profile, PROFILE_gid_tbl_len, GIDS) : GIDS;
    bool holes = !infiniband && length >= LEAST && adverse_list_shows(setting_text(SETTING_ADVERSE), ADVERSE_GID_INDEX);
    return holes ? HOLES : 0;
}

static void add_device(const char *name, size_t length)
{
    if (is_named_twice(name, length)) {
        complaint_add("device \"%.*s\": there is one of this name already", (int)length, name);
        return;
    }
    if (device_count == DEVICES_MAX || !is_device_name(name, length)) {
        complaint_add("device \"%.*s\": at most %d devices, names of 1 to %d letters, digits and any of _ . - but no "
                      "dot at the beginning",
                      (int)length, name, DEVICES_MAX, IBV_SYSFS_NAME_MAX - 1);
        return;
    }
    struct device *device = &devices[device_count];
    memset(device, 0, sizeof *device);
    memcpy(device->name, name, length);
    device->start.mtu = largest_mtu();
    device->start.first_gid = first_gid();
    identify_device(device, device_count++, infiniband);
}

/* "3" means soft0 to soft2; anything else is a list of names, separated by commas or spaces. */
static void set_devices(const char *value)
{
    uint64_t number;
    device_count = 0;
    if (text_number(value, 0, UINT64_MAX, &number)) {
        if (number > DEVICES_MAX)
            complaint_add("there are at most %d devices, not %s", DEVICES_MAX, value);
        char name[16];
        for (unsigned i = 0; i < number && i < DEVICES_MAX; i++)
            add_device(name, (size_t)snprintf(name, sizeof name, "soft%u", i));
        return;
    }
    for (struct text_part name; text_next(&value, ", ", &name);)
        if (name.length)
            add_device(name.at, name.length);
}

/* Makes the name of this number, or of the first number after it that no device has. Returns the name's length. */
static size_t make_name(char name[16], unsigned number)
{
    unsigned last = number + DEVICES_MAX;
    size_t length;
    do
        length = (size_t)snprintf(name, 16, "soft%u", number % (2 * DEVICES_MAX));
    while (is_named_twice(name, length) && number++ < last);
    return length;
}

/* The list has the interfaces of the devices in order, separated by commas: "eth0,eth1" puts the first two devices on
 * the network. Adds devices until each interface of the list has one. */
static void set_networks(const char *list)
{
    char *copy = *list ? strdup(list) : NULL, *rest = copy, name[16];
    unsigned index = 0;
    for (char *interface; copy && (interface = strsep(&rest, ",")); index++) {
        if (index == device_count)
            add_device(name, make_name(name, index));
        if (*interface && infiniband)
            complaint_add(
                "device number %u stays off the network \"%s\": RoCE is Ethernet, and the link layer is to be "
                "InfiniBand (SOFTVERBS_LINK_LAYER=ib)",
                index + 1, interface);
        else if (*interface && index < device_count)
            config_network(&devices[index], interface);
    }
    free(copy);
}

/* The setting decides; if it is not set, the profile. */
static bool is_to_be_infiniband(void)
{
    const struct profile *profile = setting_profile();
    if (profile && !setting_environment(SETTING_LINK_LAYER))
        return profile_value(profile, PROFILE_link_layer, IBV_LINK_LAYER_ETHERNET) == IBV_LINK_LAYER_INFINIBAND;
    return setting_is(SETTING_LINK_LAYER, "ib");
}

static void read_configuration(void)
{
    const char *names = setting_text(SETTING_DEVICES), *interfaces = setting_text(SETTING_NET);
    infiniband = is_to_be_infiniband();
    setting_complain(SETTING_DEVICES);
    set_devices(names);
    setting_complain(SETTING_NET);
    if (interfaces)
        set_networks(interfaces);
    complaint_place(NULL, 0);
    for (unsigned i = 0; i < device_count; i++)
        devices[i].limits = *setting_limits();
}

const struct device *config_devices(unsigned *count)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_configuration);
    *count = device_count;
    return devices;
}

const struct device *config_device(unsigned index)
{
    unsigned count;
    const struct device *all = config_devices(&count);
    return index < count ? &all[index] : NULL;
}

const struct device *config_find(const char *name)
{
    CONFIG_EACH (device)
        if (!strcmp(device->name, name))
            return device;
    return NULL;
}

bool config_publish(unsigned device, const struct device_state *state)
{
    return device < device_count && device_state_publish(&devices[device], state);
}

bool config_is_infiniband(void)
{
    config_device(0);
    return infiniband;
}

bool config_has_interfaces(void)
{
    return !config_is_infiniband() && !profile_is_efa(setting_profile());
}
