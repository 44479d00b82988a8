#include <errno.h>
#include <string.h>

#include "config/device.h"
#include "config/limits.h"
#include "events/refusal.h"
#include "imitate/layer.h"

/* The limits may be lower than the profile's, as softverbs has no more, and higher where the user raised them. Elements
 * and bytes of a message are reported as they are, since programs ask for as many as there are. */
static void tell_limits(struct ibv_context *context, struct ibv_device_attr *attr)
{
    const struct limits *limits = imitate_limits(context);
    attr->max_sge = (int)limits_most(limits, imitated, PROFILE_max_sge, PROFILE_max_sge);
    if (!imitated->set[PROFILE_max_qp_wr] && attr->max_qp_wr)
        attr->max_qp_wr = (int)limits_most(limits, imitated, PROFILE_max_qp_wr, PROFILE_max_qp_wr);
    if (attr->max_srq_sge)
        attr->max_srq_sge = (int)limits->max_srq_sge;
}

static int query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    int error = calls_get(&imitate_layer.below, ibv_query_device)(context, attr);
    if (error)
        return error;
    profile_describe(imitated, attr);
    tell_limits(context, attr);
    return 0;
}

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t size)
{
    struct ibv_device_attr_ex all = {0};
    int error = calls_get(&imitate_layer.below, ibv_query_device_ex)(context, input, attr, size);
    if (error)
        return error;
    size_t known = size < sizeof all ? size : sizeof all;
    memcpy(&all, attr, known);
    profile_describe_extended(imitated, &all);
    tell_limits(context, &all.orig_attr);
    memcpy(attr, &all, known);
    return 0;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
    struct ibv_port_attr all = {0};
    int error = calls_get(&imitate_layer.below, ibv_query_port)(context, port, attr, size);
    if (error)
        return error;
    size_t known = size < sizeof all ? size : sizeof all;
    memcpy(&all, attr, known);
    profile_describe_port(imitated, &all);
    all.max_msg_sz = imitate_limits(context)->max_message;
    memcpy(attr, &all, known);
    return 0;
}

/* --- GIDs and P_Keys: tables of another length, whose entries after ours are empty */

static int refuse_gid(int64_t index)
{
    return refuse(EINVAL, REASON_PROFILE_GID, "profile %s: index %lld, and gid_tbl_len is %u", imitated->name,
                  (long long)index, (unsigned)imitated->values[PROFILE_gid_tbl_len]);
}

static bool has_gid(int64_t index)
{
    return !imitated->set[PROFILE_gid_tbl_len] ||
           (index >= 0 && (uint64_t)index < imitated->values[PROFILE_gid_tbl_len]);
}

/* Returns true if the profile's table of the port is longer than softverbs', and the index is in its empty rest. */
static bool is_in_empty_rest(uint32_t port, int64_t index)
{
    return port == 1 && imitated->set[PROFILE_gid_tbl_len] && index >= GIDS && has_gid(index);
}

static int query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    if (!has_gid(index))
        return refused_minus(refuse_gid(index));
    if (!is_in_empty_rest(port, index))
        return calls_get(&imitate_layer.below, ibv_query_gid)(context, port, index, gid);
    memset(gid, 0, sizeof *gid);
    return 0;
}

static void set_type(struct ibv_gid_entry *entry)
{
    if (imitated->set[PROFILE_gid_type])
        entry->gid_type = (uint32_t)imitated->values[PROFILE_gid_type];
}

static int query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                        uint32_t flags, size_t size)
{
    if (!has_gid(index))
        return refuse_gid(index);
    if (is_in_empty_rest(port, index))
        return not_refused(ENODATA);
    int error = calls_get(&imitate_layer.below, _ibv_query_gid_ex)(context, port, index, entry, flags, size);
    if (!error)
        set_type(entry);
    return error;
}

/* The table that the profile leaves may fit where the whole of softverbs' does not. */
static ssize_t query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t most, uint32_t flags,
                               size_t size)
{
    struct ibv_gid_entry all[GIDS];
    bool fits = size >= sizeof *all; /* otherwise the call below refuses it */
    ssize_t count = calls_get(&imitate_layer.below, _ibv_query_gid_table)(
        context, fits ? all : entries, fits ? GIDS : most, flags, fits ? sizeof *all : size);
    size_t kept = 0;
    for (ssize_t i = 0; i < count; i++) {
        if (!has_gid(all[i].gid_index))
            continue;
        if (kept == most)
            return -refuse(EINVAL, REASON_GID_ENTRIES, "room for %zu entries", most);
        set_type(&all[i]);
        memcpy(memset((char *)entries + kept++ * size, 0, size), &all[i], sizeof all[i]);
    }
    return count < 0 ? count : (ssize_t)kept;
}

static int query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    bool empty = port == 1 && index > 0 && (uint64_t)index < profile_value(imitated, PROFILE_pkey_tbl_len, 1);
    if (!empty)
        return calls_get(&imitate_layer.below, ibv_query_pkey)(context, port, index, pkey);
    *pkey = 0;
    return 0;
}

/* --- what programs read of struct ibv_device */

static struct ibv_device **get_device_list(int *count)
{
    struct ibv_device **list = calls_get(&imitate_layer.below, ibv_get_device_list)(count);
    for (struct ibv_device **each = list; each && *each; each++) {
        (*each)->node_type = (enum ibv_node_type)profile_value(imitated, PROFILE_node_type, (*each)->node_type);
        (*each)->transport_type =
            (enum ibv_transport_type)profile_value(imitated, PROFILE_transport, (*each)->transport_type);
    }
    return list;
}

static struct ibv_context *open_device(struct ibv_device *device)
{
    struct ibv_context *context = calls_get(&imitate_layer.below, ibv_open_device)(device);
    if (context)
        context->num_comp_vectors =
            (int)profile_value(imitated, PROFILE_num_comp_vectors, (uint64_t)context->num_comp_vectors);
    return context;
}

void imitate_add_queries(struct calls *calls)
{
    calls->ibv_get_device_list = get_device_list;
    calls->ibv_open_device = open_device;
    calls->ibv_query_device = query_device;
    calls->ibv_query_device_ex = query_device_ex;
    calls->ibv_query_port = query_port;
    calls->ibv_query_gid = query_gid;
    calls->_ibv_query_gid_ex = query_gid_ex;
    calls->_ibv_query_gid_table = query_gid_table;
    calls->ibv_query_pkey = query_pkey;
}
