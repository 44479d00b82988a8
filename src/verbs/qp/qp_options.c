#include "verbs/qp/qp_options.h"

#include <errno.h>

#include "config/device_identity.h"
#include "events/refusal.h"
#include "verbs/qp/qp.h"

static const struct ibv_ece no_options = {.vendor_id = IDENTITY_VENDOR};

int qp_query_ece(struct ibv_qp *ibv, struct ibv_ece *ece)
{
    *ece = (struct ibv_ece){0};
    if (!qp_is_known(ibv))
        return refused(EINVAL);
    *ece = no_options;
    return 0;
}

int qp_set_ece(struct ibv_qp *ibv, struct ibv_ece *ece)
{
    if (!ece->vendor_id)
        return refuse(EOPNOTSUPP, REASON_QP_ECE, "vendor_id is 0");
    if (ece->comp_mask)
        return refuse(EINVAL, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", ece->comp_mask);
    if (!qp_is_known(ibv))
        return refused(EINVAL);
    *ece = no_options;
    return 0;
}

int qp_data_in_order(struct ibv_qp *ibv, enum ibv_wr_opcode opcode, uint32_t flags)
{
    return 0;
}
