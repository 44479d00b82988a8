#include "verbs/send/ah.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/device_state.h"
#include "config/gid.h"
#include "config/link_layer.h"
#include "events/refusal.h"
#include "events/words.h"
#include "process/port.h"
#include "tap/delay.h"
#include "verbs/object/context.h"
#include "verbs/object/control.h"
#include "verbs/object/domain.h"
#include "verbs/qp/qp_direct.h"
#include "verbs/send/route.h"
#include "wire/datagram.h"
#include "wire/grh.h"

enum { AH_TEXT = 160 };

enum reason ah_check(const struct context *context, const struct ibv_ah_attr *attr)
{
    return attr->port_num != 1 ? REASON_PORT : link_layer_check(context->device, attr);
}

/* Writes the numbers of the address that explain the reason. */
static void describe_address(const struct context *context, const struct ibv_ah_attr *attr, enum reason reason,
                             char text[AH_TEXT])
{
    const struct device_state *now = device_now(context->device);
    const struct ibv_global_route *grh = &attr->grh;
    char from[WORDS_GID], to[WORDS_GID];
    if (reason == REASON_PORT)
        snprintf(text, AH_TEXT, "port_num is %u", attr->port_num);
    else if (reason == REASON_GID_INDEX && grh->sgid_index >= now->first_gid && grh->sgid_index < now->gid_count)
        snprintf(text, AH_TEXT, "sgid_index is %u, whose address the network interface has no longer", grh->sgid_index);
    else if (reason == REASON_GID_INDEX)
        snprintf(text, AH_TEXT, "sgid_index is %u, the indices that are used are %u to %d", grh->sgid_index,
                 now->first_gid, (int)now->gid_count - 1);
    else if (reason == REASON_STATIC_RATE)
        snprintf(text, AH_TEXT, "static_rate is %u", attr->static_rate);
    else if (reason == REASON_GID_FAMILY)
        snprintf(text, AH_TEXT, "from %s at sgid_index %u to %s", words_gid(&now->gids[grh->sgid_index], from),
                 grh->sgid_index, words_gid(&grh->dgid, to));
    else if (reason == REASON_DLID)
        snprintf(text, AH_TEXT, "dlid is 0x%x", attr->dlid);
    else
        snprintf(text, AH_TEXT, "is_global is %u, dlid is %u", attr->is_global, attr->dlid);
}

int ah_refuse(const struct context *context, const struct ibv_ah_attr *attr, enum reason reason, const char *call)
{
    char text[AH_TEXT];
    describe_address(context, attr, reason, text);
    return refuse_in(call, EINVAL, reason, "%s", text);
}

/* Writes the GRH with a length of 0, which depends on the datagram. */
static void write_grh(struct ah *ah, const union ibv_gid *source)
{
    const struct ibv_global_route *route = &ah->attr.grh;
    grh_write(ah->grh,
              &(struct grh_route){.source = source->raw,
                                  .destination = route->dgid.raw,
                                  .traffic_class = route->traffic_class,
                                  .hop_limit = route->hop_limit,
                                  .flow_label = route->flow_label,
                                  .fragment = DATAGRAM_DONT_FRAGMENT},
              0);
}

static void close_link(struct ah *ah, struct process *process)
{
    if (!ah->remote || process->inherited)
        return;
    delay_forget(traffic_taps(&process->traffic), ah->remote);
    ah->remote->operations->close(ah->remote);
}

void ah_unmake(struct ah *ah, struct process *process)
{
    close_link(ah, process);
    free(ah);
}

static void ah_release(struct ah *ah)
{
    close_link(ah, context_of(ah->ibv.context)->process);
    if (ah->route)
        address_numbers_drop(pd_of(ah->ibv.pd)->addresses, ah->number);
    free(ah->form);
    object_free(&ah->object, ah);
}

static void ah_destroy_left(struct object *object)
{
    struct ah *ah = object_whole(object);
    ah->ibv.handle = object->handle;
    ah_destroy(&ah->ibv);
}

static const struct object_class ah_class = {
    .kind = OBJECT_AH,
    .name = "address handle",
    .offset = offsetof(struct ah, object),
    .destroy = ah_destroy_left,
};

/* Takes the number of the GID, on an EFA. 0, or the errno. */
static int take_number(struct ah *ah)
{
    struct address_number taken;
    struct address_numbers *numbers = pd_of(ah->ibv.pd)->addresses;
    if (!numbers)
        return 0;
    if (address_numbers_add(numbers, &ah->attr.grh.dgid, &taken))
        return refuse(ENOMEM, REASON_LIMIT, "the protection domain leads to %u other GIDs, or there is no memory",
                      context_of(ah->ibv.context)->device->limits.max_ah);
    ah->number = taken.number;
    ah->route = taken.route;
    return 0;
}

struct ah *ah_make(struct context *context, const struct ibv_ah_attr *attr)
{
    struct ah *ah = calloc(1, sizeof *ah);
    if (!ah)
        return NULL;
    ah->attr = *attr;
    ah->number = ADDRESS_NUMBER_NONE;
    ah->multicast = link_layer_is_multicast(context->device, attr);
    ah->local = ah->multicast || link_layer_is_local(context->device, attr);
    ah->infiniband = link_layer_is_infiniband(context->device);
    if (attr->is_global)
        write_grh(ah, &device_now(context->device)->gids[attr->grh.sgid_index]);
    if (context->device->interface[0] && (!ah->local || ah->multicast))
        ah->remote =
            port_connect(context->process, context->device, attr, attr->grh.hop_limit, (uint32_t)(uintptr_t)ah >> 4);
    return ah;
}

struct ibv_ah *ah_create(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct context *context = context_of(pd->context);
    enum reason reason = ah_check(context, attr);
    struct way way = {.reason = REASON_NONE};
    if (!pd_is_known(pd))
        return refused_null(ENOENT);
    if (reason)
        return refused_null(ah_refuse(context, attr, reason, refusal_call()));
    int error = route_find(context, attr, &way);
    if (error)
        return refused_null(way.reason ? route_refuse(context, attr, &way, refusal_call(), error) : error);
    struct ah *ah = ah_make(context, attr);
    if (!ah)
        return NULL;
    ah->ibv.context = pd->context;
    ah->ibv.pd = pd;
    error = take_number(ah);
    if (error)
        errno = error;
    else
        ah->ibv.handle = object_add(context, &ah->object, &ah_class, context->device->limits.max_ah, pd_object(pd));
    if (ah->ibv.handle)
        return &ah->ibv;
    ah_release(ah);
    return NULL;
}

static void end_work_of(struct qp *qp, const struct ah *ah)
{
    if (!qp->kind->forget_address)
        return;
    lock_take(&qp->lock);
    qp->kind->forget_address(qp, ah);
    lock_release(&qp->lock);
}

/* An EFA ends work that names the handle, as flushed; a dynamically connected queue pair forgets the way. */
static void end_work(const struct ah *ah)
{
    struct context *context = context_of(ah->ibv.context);
    struct object *object;
    control_lock(context);
    LIST_FOREACH (object, &context->objects[OBJECT_QP], siblings)
        end_work_of(qp_real(object_whole(object)), ah);
    control_unlock(context);
}

/* The queue pairs of a domain that leads to this host no more serve no READs and WRITEs of it, as their packets would
 * be refused (qp_direct.c publishes them while it does). */
static void withdraw(struct context *context, const struct pd *pd)
{
    struct object *object;
    control_lock(context);
    LIST_FOREACH (object, &context->objects[OBJECT_QP], siblings) {
        struct qp *qp = qp_real(object_whole(object));
        if (qp->memory.pd != pd || !(qp->traits & QP_UNORDERED))
            continue;
        lock_take(&qp->lock);
        qp_unpublish(qp);
        lock_release(&qp->lock);
    }
    control_unlock(context);
}

/* The child of a fork has published nothing, and waits for no peer. */
static void release_and_withdraw(struct ah *ah)
{
    struct context *context = context_of(ah->ibv.context);
    const struct pd *pd = pd_of(ah->ibv.pd);
    const union ibv_gid gid = ah->attr.grh.dgid;
    bool served = ah->route && ah->local && !context->process->inherited;
    ah_release(ah);
    if (served && pd_address_number(pd, &gid) == ADDRESS_NUMBER_NONE)
        withdraw(context, pd);
}

/* A datagram that uses the handle is sent before ibv_post_send returns, or waits in the send queue for room; the
 * program may not destroy the handle before the work's completion (ibv_post_send(3)). */
int ah_destroy(struct ibv_ah *ibv)
{
    struct ah *ah = (struct ah *)ibv;
    int error = object_remove(&ah->object, ibv->handle, pd_object(ibv->pd));
    if (!error)
        end_work(ah);
    if (!error)
        release_and_withdraw(ah);
    return error;
}

int ah_from_wc(struct ibv_context *ibv, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
    const struct context *context = context_of(ibv);
    union ibv_gid source, destination;
    memset(attr, 0, sizeof *attr);
    attr->port_num = port;
    attr->sl = link_layer_is_infiniband(context->device) ? wc->sl : 0; /* RoCE: the kind of packet (qp_owner.c) */
    attr->dlid = wc->slid;
    attr->src_path_bits = wc->dlid_path_bits;
    if (!(wc->wc_flags & IBV_WC_GRH))
        return 0;
    gid_from_grh((const uint8_t *)grh, &source, &destination);
    attr->is_global = 1;
    attr->grh.dgid = source;
    attr->grh.hop_limit = 0xff;
    if (((const uint8_t *)grh)[0] >> 4 == 6) {
        attr->grh.flow_label = ntohl(grh->version_tclass_flow) & 0xfffff;
        attr->grh.traffic_class = ntohl(grh->version_tclass_flow) >> 20 & 0xff;
    } else {
        attr->grh.traffic_class = ((const uint8_t *)grh)[21];
    }
    int index = device_state_find(device_now(context->device), &destination);
    if (index >= 0) {
        attr->grh.sgid_index = (uint8_t)index;
        return 0;
    }
    if (gid_is_multicast(&destination))
        return 0; /* a multicast may be answered from any GID */
    char text[WORDS_GID];
    return refused_minus(refuse(EINVAL, REASON_WC_GID, "the message was sent to %s", words_gid(&destination, text)));
}
