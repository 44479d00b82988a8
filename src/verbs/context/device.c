#include "verbs/context/device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "adverse/adverse.h"
#include "config/config.h"
#include "config/device_identity.h"
#include "config/device_state.h"
#include "config/link_layer.h"
#include "config/local_gid.h"
#include "events/refusal.h"
#include "events/words.h"
#include "process/port_state.h"
#include "transport/raw_frame.h"
#include "transport/tm/tags.h"
#include "verbs/kinds/ethernet/rwq_ind_table.h"
#include "verbs/kinds/srq_tags.h"
#include "verbs/qp/kind.h"
#include "verbs/queue/cq_event.h"
#include "verbs/send/rate_limit.h"

/* All memory of the program pages on demand, so all operations of a service can use it. */
enum {
    ODP_UD = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV,
    ODP_UC = ODP_UD | IBV_ODP_SUPPORT_WRITE,
    ODP_RC = ODP_UC | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | NEWER_ODP_SUPPORT_FLUSH |
             NEWER_ODP_SUPPORT_ATOMIC_WRITE,
};

/* Multiplies limits for an attribute, which is signed: raised limits may multiply to more than INT_MAX. */
static int product(uint32_t a, uint32_t b)
{
    return (uint64_t)a * b > INT_MAX ? INT_MAX : (int)(a * b);
}

/* Raw packets are for Ethernet, so a port of InfiniBand says nothing of them. Sizes of queues stay as they were made
 * (IBV_DEVICE_RESIZE_MAX_WR is for IBV_QP_CAP of ibv_modify_qp), and no call asks for an event after a number of
 * entries (IBV_DEVICE_N_NOTIFY_CQ). */
static unsigned capabilities(const struct device *device)
{
    unsigned raw = link_layer_is_infiniband(device) ? 0 : IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_MANAGED_FLOW_STEERING;
    return IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_PORT_ACTIVE_EVENT |
           IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_MEM_WINDOW |
           IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC | raw;
}

void device_query(const struct context *context, struct ibv_device_attr *attr)
{
    const struct limits *limits = &context->device->limits;
    *attr = (struct ibv_device_attr){
        .max_mr_size = UINT64_MAX,
        .vendor_id = IDENTITY_VENDOR,
        .vendor_part_id = IDENTITY_PART,
        .hw_ver = IDENTITY_HARDWARE,
        .page_size_cap = ~(uint64_t)(sysconf(_SC_PAGESIZE) - 1),
        .max_qp = (int)limits->max_qp,
        .max_qp_wr = (int)limits->max_qp_wr,
        .device_cap_flags = capabilities(context->device),
        .max_sge = (int)limits->max_sge,
        .max_sge_rd = (int)limits->max_sge,
        .max_cq = (int)limits->max_cq,
        .max_cqe = (int)limits->max_cqe,
        .max_mr = (int)limits->max_mr,
        .max_mw = (int)limits->max_mw,
        .max_pd = (int)limits->max_pd,
        .max_qp_rd_atom = (int)limits->max_rd_atomic,
        .max_res_rd_atom = product(limits->max_rd_atomic, limits->max_qp),
        .max_qp_init_rd_atom = (int)limits->max_rd_atomic,
        .atomic_cap = IBV_ATOMIC_GLOB, /* CPU instructions: atomic towards everything on the host */
        .max_mcast_grp = (int)limits->max_groups,
        .max_mcast_qp_attach = (int)limits->max_groups,
        .max_total_mcast_qp_attach = product(limits->max_groups, limits->max_groups),
        .max_ah = (int)limits->max_ah,
        .max_srq = (int)limits->max_srq,
        .max_srq_wr = (int)limits->max_srq_wr,
        .max_srq_sge = (int)limits->max_srq_sge,
        .max_pkeys = 1,
        .phys_port_cnt = 1,
    };
    snprintf(attr->fw_ver, sizeof attr->fw_ver, IDENTITY_FIRMWARE);
    memcpy(&attr->node_guid, context->device->guid, 8);
    memcpy(&attr->sys_image_guid, context->device->guid, 8);
}

static void leave_out_raw_packets(struct ibv_device_attr_ex *attr)
{
    attr->tso_caps = (struct ibv_tso_caps){0};
    attr->rss_caps = (struct ibv_rss_caps){0};
    attr->raw_packet_caps = 0;
    attr->max_wq_type_rq = 0;
    attr->packet_pacing_caps.supported_qpts &= ~qp_types_with(QP_ETHERNET);
    attr->device_cap_flags_ex &= ~(uint64_t)IBV_DEVICE_RAW_SCATTER_FCS;
}

static int refuse_size(size_t size, size_t least)
{
    return refuse(EINVAL, REASON_STRUCT_SIZE, "%zu bytes, and at least %zu are written", size, least);
}

int device_query_ex(struct ibv_context *ibv, const struct ibv_query_device_ex_input *input,
                    struct ibv_device_attr_ex *attr, size_t size)
{
    const struct limits *limits = &context_of(ibv)->device->limits;
    struct ibv_device_attr_ex all = {
        .completion_timestamp_mask = UINT64_MAX,
        .hca_core_clock = DEVICE_CLOCK_KHZ,
        .max_dm_size = limits->max_dm,
        .odp_caps =
            {
                .general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
                .per_transport_caps = {.rc_odp_caps = ODP_RC, .uc_odp_caps = ODP_UC, .ud_odp_caps = ODP_UD},
            },
        .xrc_odp_caps = ODP_RC,
        .tso_caps = {.max_tso = RAW_TSO_MAX, .supported_qpts = qp_types_with(QP_ETHERNET)},
        .rss_caps = {.supported_qpts = qp_types_with(QP_ETHERNET),
                     .max_rwq_indirection_tables = limits->max_qp,
                     .max_rwq_indirection_table_size = WQ_TABLE_MAX,
                     .rx_hash_fields_mask = RSS_FIELDS | (uint64_t)IBV_RX_HASH_INNER,
                     .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ},
        .packet_pacing_caps = {.qp_rate_limit_min = 1,
                               .qp_rate_limit_max = RATE_LIMIT_RATE_MAX,
                               .supported_qpts = qp_types_with(QP_SENDS)},
        .max_wq_type_rq = limits->max_qp,
        .raw_packet_caps =
            IBV_RAW_PACKET_CAP_CVLAN_STRIPPING | IBV_RAW_PACKET_CAP_SCATTER_FCS | IBV_RAW_PACKET_CAP_IP_CSUM,
        .tm_caps = {.max_rndv_hdr_size = TAGS_RENDEZVOUS_MAX,
                    .max_num_tags = SRQ_TAGS_MAX,
                    .max_ops = SRQ_TAGS_OPERATIONS_MAX,
                    .max_sge = SRQ_TAGS_SGES,
                    .flags = IBV_TM_CAP_RC},
        .cq_mod_caps = {.max_cq_count = CQ_MODERATION_MOST, .max_cq_period = CQ_MODERATION_MOST},
    };
    if (input && input->comp_mask)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", input->comp_mask);
    if (size < sizeof all.orig_attr)
        return refuse_size(size, sizeof all.orig_attr);
    device_query(context_of(ibv), &all.orig_attr);
    *newer_phys_port_cnt_ex(&all) = 1;
    all.device_cap_flags_ex = (unsigned)all.orig_attr.device_cap_flags | IBV_DEVICE_RAW_SCATTER_FCS;
    if (link_layer_is_infiniband(context_of(ibv)->device))
        leave_out_raw_packets(&all);
    memset(attr, 0, size);
    memcpy(attr, &all, size < sizeof all ? size : sizeof all);
    return 0;
}

static int refuse_port(uint32_t port)
{
    return refuse(EINVAL, REASON_PORT, "port is %u", port);
}

int device_query_port_speed(struct ibv_context *ibv, uint32_t port, uint64_t *speed)
{
    if (port != 1)
        return refuse_port(port);
    *speed = IDENTITY_RATE;
    return 0;
}

int device_query_port(struct ibv_context *ibv, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
    const struct device *device = context_of(ibv)->device;
    const struct device_state *now = device_now(device);
    if (port != 1)
        return refuse_port(port);
    bool down = !now->up || port_state_down(context_of(ibv)->process, port_state_bit(device));
    struct ibv_port_attr all = {
        .state = down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = device_state_mtu(now),
        .gid_tbl_len = GIDS,
        .max_msg_sz = device->limits.max_message,
        .pkey_tbl_len = 1,
        .max_vl_num = 1,
        .active_width = IDENTITY_WIDTH,
        .active_speed = IDENTITY_SPEED,
        .phys_state = down ? IDENTITY_PHYSICAL_STATE_DOWN : IDENTITY_PHYSICAL_STATE,
    };
    link_layer_describe(device, &all);
    memset(attr, 0, size);
    memcpy(attr, &all, size < sizeof all ? size : sizeof all);
    return 0;
}

static int refuse_gid_index(int64_t index)
{
    return refuse_because(EINVAL, REASON_GID_INDEX, "index is %lld, and the table of GIDs has the indices 0 to %u",
                          (long long)index, GIDS - 1);
}

int device_query_gid(struct ibv_context *ibv, uint8_t port, int index, union ibv_gid *gid)
{
    if (port != 1)
        return refused_minus(refuse_port(port));
    if (index < 0 || index >= GIDS)
        return refused_minus(refuse_gid_index(index));
    const struct device_state *now = device_now(context_of(ibv)->device);
    *gid = now->gids[index];
    if (now->first_gid)
        adverse_note(ADVERSE_GID_INDEX);
    return 0;
}

int device_query_pkey(struct ibv_context *ibv, uint8_t port, int index, __be16 *pkey)
{
    if (port != 1)
        return refused_minus(refuse_port(port));
    if (index)
        return refused_minus(refuse(EINVAL, REASON_PKEY_INDEX, "index is %d", index));
    *pkey = htons(DEVICE_PKEY);
    return 0;
}

int device_find_pkey(struct ibv_context *ibv, uint8_t port, __be16 pkey)
{
    if (port != 1)
        return refused_minus(refuse_port(port));
    if (pkey != htons(DEVICE_PKEY))
        return refused_minus(
            refuse(EINVAL, REASON_PKEY, "P_Key 0x%x, and the port has 0x%x", ntohs(pkey), DEVICE_PKEY));
    return 0;
}

/* Writes the entry of an index of the table. */
static int device_query_gid_ex(struct ibv_context *ibv, uint32_t index, struct ibv_gid_entry *entry)
{
    const struct device *device = context_of(ibv)->device;
    const struct device_state *now = device_now(device);
    if (!device_state_has(now, index))
        return not_refused(ENODATA);
    *entry = (struct ibv_gid_entry){
        .gid = now->gids[index],
        .gid_index = index,
        .port_num = 1,
        .gid_type = link_layer_gid_type(device),
        .ndev_ifindex = config_has_interfaces() ? if_nametoindex(device->interface[0] ? device->interface : "lo") : 0,
    };
    return 0;
}

static void put_gid_entry(const struct ibv_gid_entry *entry, void *to, size_t size)
{
    memcpy(to, entry, sizeof *entry);
    memset((char *)to + sizeof *entry, 0, size - sizeof *entry);
}

int device_query_gid_entry(struct ibv_context *ibv, uint32_t port, uint32_t index, void *to, size_t size)
{
    struct ibv_gid_entry entry;
    if (size < sizeof entry)
        return refuse_size(size, sizeof entry);
    if (port != 1)
        return refuse_port(port);
    if (index >= GIDS)
        return refuse_gid_index(index);
    int error = device_query_gid_ex(ibv, index, &entry);
    if (!error)
        put_gid_entry(&entry, to, size);
    return error;
}

ssize_t device_query_gid_table(struct ibv_context *ibv, void *entries, size_t most, size_t size)
{
    struct ibv_gid_entry entry;
    size_t count = 0;
    if (size < sizeof entry)
        return -refuse_size(size, sizeof entry);
    for (unsigned i = 0; i < GIDS; i++) {
        if (device_query_gid_ex(ibv, i, &entry))
            continue;
        if (count == most)
            return -refuse(EINVAL, REASON_GID_ENTRIES, "room for %zu entries", most);
        put_gid_entry(&entry, (char *)entries + count++ * size, size);
    }
    return (ssize_t)count;
}

/* Link-local GIDs carry the MAC as EUI-64; mapped ones of loopback number the devices of this host from 1. */
int device_resolve_mac(struct ibv_context *ibv, struct ibv_ah_attr *attr, uint8_t mac[6], uint16_t *vid)
{
    const union ibv_gid *gid = &attr->grh.dgid;
    enum { NO_VLAN = 0xffff };
    if (link_layer_is_infiniband(context_of(ibv)->device)) /* ports of InfiniBand have no MAC */
        return refused_minus(refuse(EOPNOTSUPP, REASON_MAC_ON_INFINIBAND, "port 1 is one of InfiniBand"));
    if (!config_local_gid(gid)) {
        char text[WORDS_GID];
        return refused_minus(refuse(EHOSTUNREACH, REASON_MAC_UNKNOWN, "dgid %s", words_gid(gid, text)));
    }
    memcpy(mac, device_now(context_of(ibv)->device)->mac, 6);
    mac[5] = gid->raw[0] ? gid->raw[15] : (uint8_t)(gid->raw[15] - 1);
    *vid = NO_VLAN;
    return 0;
}

int device_query_rt_values(struct ibv_context *ibv, struct ibv_values_ex *values)
{
    if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", values->comp_mask);
    /* completion timestamps count nanoseconds of the same clock; a timespec is how ibv_query_rt_values_ex(3) has it */
    if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)
        clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
    return 0;
}
