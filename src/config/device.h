/* A device that this process sees. */
#ifndef CONFIG_DEVICE_H
#define CONFIG_DEVICE_H

#include <infiniband/verbs.h>
#include <stdint.h>

enum { DEVICES_MAX = 16, GIDS = 16, DEVICE_PKEY = 0xffff };

struct limits {
    uint32_t max_qp, max_qp_wr, max_sge, max_cq, max_cqe, max_mr, max_pd, max_ah, max_srq, max_srq_wr, max_srq_sge;
    uint32_t max_rd_atomic, max_inline, max_message, max_groups, max_mtu, max_mw, max_dm;
};

struct device {
    unsigned index;
    uint8_t link_layer; /* IBV_LINK_LAYER_ETHERNET or _INFINIBAND; see config/link_layer.h */
    uint16_t lid;       /* InfiniBand; 0: RoCE has none */
    char interface[16]; /* RoCE on this network interface; empty: this host only */
    uint32_t mtu;       /* bytes: the active MTU of the port */
    char name[IBV_SYSFS_NAME_MAX];
    uint8_t mac[6];
    uint8_t guid[8];
    union ibv_gid gids[GIDS]; /* RoCE v2, or InfiniBand's one; unused ones are zero */
    unsigned gid_count;
    struct limits limits;
};

#endif
