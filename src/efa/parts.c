/* Parts of objects that programs of libefa call: struct efadv_cq and struct efadv_qp. */
#include <errno.h>
#include <string.h>

#include "base/container.h"
#include "efa/efa.h"
#include "verbs/queue/cq.h"

_Static_assert(sizeof(struct efadv_cq) <= sizeof((struct cq *)0)->vendor, "a completion queue has room for the part");

/* The sender's GID of the entry that the iterator shows; only of senders without an address handle number. */
static int read_sgid(struct efadv_cq *part, union ibv_gid *sgid)
{
    const struct cq *cq = container_of((uint64_t(*)[3])part, struct cq, vendor);
    if (cq->current.slid != ADDRESS_NUMBER_NONE)
        return -ENOENT;
    memcpy(sgid, cq->current.sgid, sizeof *sgid);
    return 0;
}

static int read_no_sgid(struct efadv_cq *part, union ibv_gid *sgid)
{
    return -ENOENT;
}

/* Returns true if the shown entry is of a WRITE with immediate that took no receive. */
static bool is_unsolicited(struct efadv_cq *part)
{
    return container_of((uint64_t(*)[3])part, struct cq, vendor)->current.unsolicited;
}

static bool is_never_unsolicited(struct efadv_cq *part)
{
    return false;
}

static void set_no_hints(struct efadv_qp *part, uint32_t hints)
{
}

void efa_begin_cq(struct ibv_cq_ex *ibv)
{
    struct cq *cq = (struct cq *)ibv;
    const struct efadv_cq part = {.wc_read_sgid = read_sgid, .wc_is_unsolicited = is_unsolicited};
    memcpy(cq->vendor, &part, sizeof part);
    cq->slow.shows = true; /* the usual way does not copy the GID */
}

/* Other completion queues than those of efadv_create_cq have no part, and their entries no GID. */
struct efadv_cq *own_efadv_cq_from_ibv_cq_ex(struct ibv_cq_ex *ibv)
{
    static struct efadv_cq none = {.wc_read_sgid = read_no_sgid, .wc_is_unsolicited = is_never_unsolicited};
    struct efadv_cq *part = ibv ? (struct efadv_cq *)((struct cq *)ibv)->vendor : NULL;
    return part && part->wc_read_sgid ? part : &none;
}

/* The hints have no effect on results; pyverbs asks without a queue pair, too. */
struct efadv_qp *own_efadv_qp_from_ibv_qp_ex(struct ibv_qp_ex *ibv)
{
    static struct efadv_qp all = {.wr_set_processing_hints = set_no_hints};
    return &all;
}
