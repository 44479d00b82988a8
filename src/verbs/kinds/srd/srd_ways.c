#include "verbs/kinds/srd/srd_ways.h"

#include <stdlib.h>
#include <string.h>

#include "config/device_state.h"
#include "link/link.h"
#include "process/port.h"
#include "tap/delay.h"
#include "verbs/object/context.h"
#include "verbs/qp/qp_doors.h"
#include "wire/grh.h"

enum { WAYS = 16 };

struct srd_ways {
    struct {
        uint8_t gid[16];
        struct link *link;
    } kept[WAYS];
    unsigned next; /* the next to be replaced */
};

void srd_ways_source(const struct qp *qp, const uint8_t gid[16], uint8_t source[16])
{
    const struct device_state *now = device_now(qp->object.context->device);
    unsigned index = now->first_gid;
    for (unsigned i = now->first_gid; i < now->gid_count; i++)
        if (device_state_has(now, i) && grh_is_ipv4(now->gids[i].raw) == grh_is_ipv4(gid)) {
            index = i;
            break;
        }
    memcpy(source, now->gids[index].raw, 16);
}

static void close_way(struct qp *qp, struct link *link)
{
    if (!link)
        return;
    delay_forget(traffic_taps(&qp->process->traffic), link);
    link->operations->close(link);
}

static struct link *open_way(struct qp *qp, struct srd_ways *ways, const uint8_t gid[16])
{
    unsigned place = ways->next++ % WAYS;
    union ibv_gid from, to;
    srd_ways_source(qp, gid, from.raw);
    memcpy(to.raw, gid, sizeof to.raw);
    close_way(qp, ways->kept[place].link);
    ways->kept[place].link = port_reply_link(qp->process, qp->object.context->device, &from, &to);
    memcpy(ways->kept[place].gid, gid, 16);
    return ways->kept[place].link;
}

struct link *srd_ways_find(struct qp *qp, const uint8_t gid[16])
{
    lock_assert_held(&qp->lock);
    struct srd_ways *ways = qp->sends.ways;
    if (!qp->object.context->device->interface[0])
        return NULL;
    if (!ways && !(ways = qp->sends.ways = calloc(1, sizeof *ways)))
        return NULL;
    for (unsigned i = 0; i < WAYS; i++)
        if (ways->kept[i].link && !memcmp(ways->kept[i].gid, gid, 16))
            return ways->kept[i].link;
    return open_way(qp, ways, gid);
}

void srd_ways_close(struct qp *qp)
{
    struct srd_ways *ways = qp->sends.ways;
    for (unsigned i = 0; ways && i < WAYS && !qp->process->inherited; i++)
        close_way(qp, ways->kept[i].link);
    free(ways);
    qp->sends.ways = NULL;
}
