/* The fixed attributes of every device: the verbs (ibv_query_device, ibv_query_port) and the files below
 * /sys/class/infiniband that `softverbs run` provides report the same. */
#pragma once

#include "softverbs_version.h" /* made when the build is configured, of the version in meson.build */

#define IDENTITY_FIRMWARE SOFTVERBS_VERSION /* fw_ver */
#define IDENTITY_BOARD "softverbs"          /* board_id, hca_type */
#define IDENTITY_DEVICE_NODE "uverbs"       /* ibv_device.dev_name, followed by the device's index */

enum {
    IDENTITY_VENDOR = 0x025356,             /* a locally administered OUI, as no OUI is assigned to us */
    IDENTITY_PART = 1,                      /* vendor_part_id */
    IDENTITY_HARDWARE = 0,                  /* hw_ver */
    IDENTITY_PORT_CAPS = 0x04010000,        /* port_cap_flags: IBV_PORT_CM_SUP, IBV_PORT_IP_BASED_GIDS */
    IDENTITY_PORT_CAPS_INFINIBAND = 0x4800, /* IBV_PORT_SYS_IMAGE_GUID_SUP, IBV_PORT_EXTENDED_SPEEDS_SUP */
    IDENTITY_WIDTH = 2,                     /* active_width: 4X */
    IDENTITY_SPEED = 32,                    /* active_speed: EDR; with 4X: 100 Gb/s, about what one core copies */
    IDENTITY_RATE = 1000,                   /* width and speed in units of 100 Mb/s */
    IDENTITY_PHYSICAL_STATE = 5,            /* LinkUp */
    IDENTITY_PHYSICAL_STATE_DOWN = 3,       /* Disabled, as RoCE adapters call it */
};
