/* libefa.so.1 as programs find it: libibverbs does the calls, so that they pass its layers. */
#include <errno.h>
#include <infiniband/efadv.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

#define VENDOR(answer, type, name, parameters, arguments)                                                              \
    type softverbs_##name parameters;                                                                                  \
    type name parameters;                                                                                              \
    EXPORT type name parameters                                                                                        \
    {                                                                                                                  \
        return softverbs_##name arguments;                                                                             \
    }
#include "calls/efa.def"

/* Parts of objects that no EFA has made: they may be called, and know nothing. */

static int read_no_sgid(struct efadv_cq *cq, union ibv_gid *sgid)
{
    return -ENOENT;
}

static bool is_never_unsolicited(struct efadv_cq *cq)
{
    return false;
}

static void set_no_hints(struct efadv_qp *qp, uint32_t hints)
{
}

#define PART(type, name, parameters) type name parameters;
#include "calls/efa.def"

EXPORT struct efadv_cq *efadv_cq_from_ibv_cq_ex(struct ibv_cq_ex *cq)
{
    static struct efadv_cq none = {.wc_read_sgid = read_no_sgid, .wc_is_unsolicited = is_never_unsolicited};
    return &none;
}

EXPORT struct efadv_qp *efadv_qp_from_ibv_qp_ex(struct ibv_qp_ex *qp)
{
    static struct efadv_qp none = {.wr_set_processing_hints = set_no_hints};
    return &none;
}
