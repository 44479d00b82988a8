/* Properties of a queue pair beyond the specification: ibv_query_ece(3), ibv_set_ece(3), ibv_query_qp_data_in_order(3).
 * Thread-safe. */
#ifndef VERBS_QP_QP_OPTIONS_H
#define VERBS_QP_QP_OPTIONS_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* Enhanced connection establishment: options that two ends of one vendor agree on when they connect. This device has
 * none, so a queue pair has the device's vendor_id and options 0, and accepts no option that is set, which it writes
 * back. EINVAL for a queue pair that is none and for comp_mask; setting without a vendor_id is EOPNOTSUPP, as in
 * rdma-core, where 0 says that the other end has no options at all. */
int qp_query_ece(struct ibv_qp *, struct ibv_ece *);
int qp_set_ece(struct ibv_qp *, struct ibv_ece *);

/* Always 0, which is the answer that a program can't be misled by. The guarantee is less than order and more than
 * nothing: packets of a message are written one after the other, and of each packet the last byte lands last, with the
 * bytes of its aligned word (wire/payload.h); but the bytes before it land in any order, since they are copied in the way
 * that is fastest for their number. A program that polls for the last byte of a SEND, WRITE or READ finds the others in
 * place. */
int qp_data_in_order(struct ibv_qp *, enum ibv_wr_opcode, uint32_t flags);

#endif
