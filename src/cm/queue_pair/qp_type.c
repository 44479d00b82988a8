#include "cm/queue_pair/qp_type.h"

static const struct qp_type types[] = {
    [IBV_QPT_RC] = {.requests = true, .responds = true, .transport = CM_TRANSPORT_RC, .peer = IBV_QPT_RC},
    [IBV_QPT_UC] = {.transport = CM_TRANSPORT_UC, .peer = IBV_QPT_UC},
    [IBV_QPT_UD] = {.datagram = true, .transport = CM_TRANSPORT_RC},
    [IBV_QPT_XRC_SEND] = {.requests = true,
                          .transport = CM_TRANSPORT_EXTENDED,
                          .extended = CM_EXTENDED_XRC,
                          .peer = IBV_QPT_XRC_RECV},
    [IBV_QPT_XRC_RECV] = {.responds = true, .transport = CM_TRANSPORT_RC},
};

enum { TYPES = sizeof types / sizeof *types };

const struct qp_type *qp_type_find(uint8_t type)
{
    static const struct qp_type none = {.transport = CM_TRANSPORT_RC};
    return type < TYPES ? &types[type] : &none;
}

uint8_t qp_type_of_peer(const struct cm_req *req)
{
    for (unsigned i = 0; i < TYPES; i++) {
        bool extended = types[i].transport == CM_TRANSPORT_EXTENDED;
        if (types[i].peer && types[i].transport == req->transport &&
            (!extended || types[i].extended == req->extended_transport))
            return types[i].peer;
    }
    return 0;
}
