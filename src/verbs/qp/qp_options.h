/* Properties of a queue pair beyond the specification: ibv_query_ece(3), ibv_set_ece(3), ibv_query_qp_data_in_order(3).
 * Thread-safe. */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

/* Enhanced connection establishment: options that two ends of one vendor agree on when they connect. This device has no
 * options, so a queue pair has the device's vendor_id and options 0, accepts no option that is set, and writes that
 * back. EINVAL for an unknown queue pair and for comp_mask; setting without a vendor_id is EOPNOTSUPP, as in rdma-core,
 * where 0 means that the other end has no options at all. */
int qp_query_ece(struct ibv_qp *, struct ibv_ece *);
int qp_set_ece(struct ibv_qp *, struct ibv_ece *);

/* Always returns 0 (no order is guaranteed), on which every program can rely. The true guarantee is less than order and
 * more than nothing: packets of a message are written one after the other, and each packet's last byte lands last, with
 * the bytes of its aligned word (wire/payload.h); but the bytes before it land in any order, since they are copied in
 * the way that is fastest for their number. A program that polls for the last byte of a SEND, WRITE or READ finds the
 * others in place. */
int qp_data_in_order(struct ibv_qp *, enum ibv_wr_opcode, uint32_t flags);
