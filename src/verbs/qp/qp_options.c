#include "verbs/qp/qp_options.h"

#include <errno.h>

#include "config/device_identity.h"
#include "diag/log.h"
#include "verbs/qp/qp.h"

static const struct ibv_ece no_options = {.vendor_id = IDENTITY_VENDOR};

int qp_query_ece(struct ibv_qp *ibv, struct ibv_ece *ece)
{
    *ece = (struct ibv_ece){0};
    if (ibv->handle != qp_of(ibv)->object.handle)
        return EINVAL;
    *ece = no_options;
    return 0;
}

int qp_set_ece(struct ibv_qp *ibv, struct ibv_ece *ece)
{
    bool foreign = !ece->vendor_id;
    if (foreign || ece->comp_mask || ibv->handle != qp_of(ibv)->object.handle) {
        log_reason(LOG_INFO, REASON_QP_ECE, "ibv_set_ece vendor 0x%x mask 0x%x", ece->vendor_id, ece->comp_mask);
        return foreign ? EOPNOTSUPP : EINVAL;
    }
    *ece = no_options;
    return 0;
}

int qp_data_in_order(struct ibv_qp *ibv, enum ibv_wr_opcode opcode, uint32_t flags)
{
    return 0;
}
