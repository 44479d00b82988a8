#include "config/identify.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/text/text.h"
#include "config/link_layer.h"

/* A hash (FNV-1a) of the id of the boot, which all processes of this host have in common and no other host has.
 * /etc/machine-id is only the second choice: it differs between containers, and is equal in copied hosts. */
static uint64_t host_identity(void)
{
    char id[64] = "softverbs";
    if (!text_read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", id, sizeof id) &&
        !text_read_at(AT_FDCWD, "/etc/machine-id", id, sizeof id))
        strcpy(id, "softverbs");
    return random_mix(14695981039346656037ull, id, strcspn(id, "\n"));
}

/* The GUID is the EUI-64 of the MAC. The first GID is the link-local address of that EUI-64, as the kernel's default
 * GID is; the second is an IPv4-mapped address of loopback. */
static void identify_roce(struct device *device)
{
    const uint8_t *mac = device->start.mac;
    union ibv_gid *gid = device->start.gids + device->start.first_gid;
    device->link_layer = IBV_LINK_LAYER_ETHERNET;
    device->lid = 0;
    memcpy(device->guid, (uint8_t[8]){mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]}, 8);
    memcpy(gid[0].raw, (uint8_t[8]){0xfe, 0x80}, 8);
    memcpy(gid[0].raw + 8, device->guid, 8);
    memcpy(gid[1].raw + 10, (uint8_t[6]){0xff, 0xff, 127, 0, 0, (uint8_t)(device->index + 1)}, 6);
    device->start.gid_count = device->start.first_gid + 2;
}

static void identify_infiniband(struct device *device)
{
    const uint8_t *mac = device->start.mac;
    device->link_layer = IBV_LINK_LAYER_INFINIBAND;
    device->lid = (uint16_t)(LINK_LAYER_FIRST_LID + device->index);
    memcpy(device->guid, (uint8_t[8]){mac[0], mac[1], mac[2], 0x03, 0x00, mac[3], mac[4], mac[5]}, 8);
    memcpy(device->start.gids[0].raw, (uint8_t[8]){0xfe, 0x80}, 8);
    memcpy(device->start.gids[0].raw + 8, device->guid, 8);
    device->start.gid_count = 1;
}

void identify_device(struct device *device, unsigned index, bool infiniband)
{
    uint64_t host = host_identity();
    /* a locally administered MAC */
    uint8_t mac[6] = {0x02, host >> 24 & 0xff, host >> 16 & 0xff, host >> 8 & 0xff, host & 0xff, (uint8_t)index};
    device->index = index;
    memcpy(device->start.mac, mac, sizeof mac);
    memset(device->start.gids, 0, sizeof device->start.gids);
    device->start.up = true;
    if (infiniband)
        identify_infiniband(device);
    else
        identify_roce(device);
}
