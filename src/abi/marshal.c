#include "abi/marshal.h"

#include <string.h>

#include "abi/export.h"

#define COPY(field) to->field = from->field

EXPORT void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, struct ib_uverbs_ah_attr *from)
{
    memcpy(to->grh.dgid.raw, from->grh.dgid, sizeof to->grh.dgid.raw);
    COPY(grh.flow_label);
    COPY(grh.sgid_index);
    COPY(grh.hop_limit);
    COPY(grh.traffic_class);
    COPY(dlid);
    COPY(sl);
    COPY(src_path_bits);
    COPY(static_rate);
    COPY(is_global);
    COPY(port_num);
}

static void copy_capacities(struct ibv_qp_cap *to, const struct ib_uverbs_qp_attr *from)
{
    COPY(max_send_wr);
    COPY(max_recv_wr);
    COPY(max_send_sge);
    COPY(max_recv_sge);
    COPY(max_inline_data);
}

static void copy_numbers(struct ibv_qp_attr *to, const struct ib_uverbs_qp_attr *from)
{
    COPY(qkey);
    COPY(rq_psn);
    COPY(sq_psn);
    COPY(dest_qp_num);
    COPY(pkey_index);
    COPY(alt_pkey_index);
    COPY(en_sqd_async_notify);
    COPY(sq_draining);
    COPY(max_rd_atomic);
    COPY(max_dest_rd_atomic);
    COPY(min_rnr_timer);
    COPY(port_num);
    COPY(timeout);
    COPY(retry_cnt);
    COPY(rnr_retry);
    COPY(alt_port_num);
    COPY(alt_timeout);
}

EXPORT void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, struct ib_uverbs_qp_attr *from)
{
    COPY(cur_qp_state);
    COPY(path_mtu);
    COPY(path_mig_state);
    COPY(qp_access_flags);
    copy_numbers(to, from);
    copy_capacities(&to->cap, from);
    ibv_copy_ah_attr_from_kern(&to->ah_attr, &from->ah_attr);
    ibv_copy_ah_attr_from_kern(&to->alt_ah_attr, &from->alt_ah_attr);
}

/* Copies the fields that both path records have; it serves both directions. */
#define COPY_PATH_RECORD()                                                                                             \
    do {                                                                                                               \
        COPY(dlid);                                                                                                    \
        COPY(slid);                                                                                                    \
        COPY(raw_traffic);                                                                                             \
        COPY(flow_label);                                                                                              \
        COPY(hop_limit);                                                                                               \
        COPY(traffic_class);                                                                                           \
        COPY(reversible);                                                                                              \
        COPY(numb_path);                                                                                               \
        COPY(pkey);                                                                                                    \
        COPY(sl);                                                                                                      \
        COPY(mtu_selector);                                                                                            \
        COPY(mtu);                                                                                                     \
        COPY(rate_selector);                                                                                           \
        COPY(rate);                                                                                                    \
        COPY(packet_life_time_selector);                                                                               \
        COPY(packet_life_time);                                                                                        \
        COPY(preference);                                                                                              \
    } while (0)

EXPORT void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, struct ib_user_path_rec *from)
{
    memcpy(to->dgid.raw, from->dgid, sizeof to->dgid.raw);
    memcpy(to->sgid.raw, from->sgid, sizeof to->sgid.raw);
    COPY_PATH_RECORD();
}

EXPORT void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, struct ibv_sa_path_rec *from)
{
    memcpy(to->dgid, from->dgid.raw, sizeof to->dgid);
    memcpy(to->sgid, from->sgid.raw, sizeof to->sgid);
    COPY_PATH_RECORD();
}
