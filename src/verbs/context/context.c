#include "verbs/context/context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "config/device_identity.h"
#include "diag/log.h"
#include "process/port.h"
#include "process/port_state.h"
#include "verbs/context/context.h"
#include "verbs/context/device.h"
#include "verbs/context/import.h"
#include "verbs/kinds/ethernet/flow.h"
#include "verbs/kinds/xrc/xrcd.h"
#include "verbs/memory/dm.h"
#include "verbs/memory/dmah.h"
#include "verbs/memory/mr.h"
#include "verbs/memory/mw.h"
#include "verbs/object/async.h"
#include "verbs/object/counters.h"
#include "verbs/object/domain.h"
#include "verbs/qp/comp_cntr.h"
#include "verbs/qp/wq.h"
#include "verbs/queue/comp_channel.h"
#include "verbs/queue/cq.h"
#include "verbs/queue/srq.h"
#include "verbs/send/ah.h"

/* Vendor libraries (libmlx5, libefa) look for their own operations in the words behind a struct ibv_device: those
 * must be there, and zero. */
struct listed_device {
    struct ibv_device ibv;
    char zero[128];
    const struct device *device;
};

static struct listed_device listed[DEVICES_MAX];

static void context_fill(struct listed_device *entry, const struct device *device)
{
    struct ibv_device *ibv = &entry->ibv;
    entry->device = device;
    ibv->node_type = IBV_NODE_CA;
    ibv->transport_type = IBV_TRANSPORT_IB;
    snprintf(ibv->name, sizeof ibv->name, "%s", device->name);
    snprintf(ibv->dev_name, sizeof ibv->dev_name, IDENTITY_DEVICE_NODE "%u", device->index);
    snprintf(ibv->dev_path, sizeof ibv->dev_path, "/sys/class/infiniband_verbs/uverbs%u", device->index);
    snprintf(ibv->ibdev_path, sizeof ibv->ibdev_path, "/sys/class/infiniband/%.63s", device->name);
}

/* Once, which a fork in another thread's midst does not disturb. */
static void list_devices(void)
{
    unsigned count;
    const struct device *devices = config_devices(&count);
    for (unsigned i = 0; i < count; i++)
        context_fill(&listed[i], &devices[i]);
    config_warn();
}

struct ibv_device **context_device_list(int *number)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    unsigned count;
    config_devices(&count);
    struct ibv_device **list = calloc(count + 1, sizeof *list);
    if (!list)
        return NULL;
    pthread_once(&once, list_devices);
    for (unsigned i = 0; i < count; i++)
        list[i] = &listed[i].ibv;
    if (number)
        *number = (int)count;
    return list;
}

static const struct device *device_of(struct ibv_device *ibv)
{
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        if (&listed[i].ibv == ibv)
            return listed[i].device;
    return NULL;
}

__be64 context_device_guid(struct ibv_device *ibv)
{
    const struct device *device = device_of(ibv);
    __be64 guid = 0;
    if (device)
        memcpy(&guid, device->guid, sizeof guid);
    return guid;
}

static void initialize(struct context *context, struct ibv_device *ibv)
{
    struct ibv_context *shown = &context->ibv.context;
    context->ibv.sz = sizeof context->ibv;
    shown->abi_compat = (void *)UINTPTR_MAX; /* says that a verbs_context is around this one */
    shown->device = ibv;
    shown->async_fd = context->async.pipe.fd;
    shown->num_comp_vectors = DEVICE_COMP_VECTORS;
    pthread_mutex_init(&shown->mutex, NULL);
    port_state_learn(context->process, context->device);
    mutex_take(&context->process->control);
    LIST_INSERT_HEAD(&context->process->contexts, context, siblings);
    mutex_release(&context->process->control);
}

/* A context that is in no list yet; NULL and errno. The descriptor stays the caller's when that fails. */
static struct context *context_make(const struct device *device, struct process *process, int cmd_fd)
{
    mutex_take(&process->control);
    int error = process->parts->open_device(process, device);
    mutex_release(&process->control);
    if (error) {
        errno = error;
        return NULL;
    }
    struct context *context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    context->device = device;
    context->process = process;
    context->ibv.context.cmd_fd = cmd_fd;
    error = import_identify(cmd_fd, &context->identity) ? async_initialize(&context->async) : errno;
    if (!error)
        return context;
    free(context);
    errno = error;
    return NULL;
}

/* Programs pass the descriptor on to import the device elsewhere. */
struct context *context_open(struct ibv_device *ibv, const struct process_parts *parts)
{
    const struct device *device = device_of(ibv);
    if (!device) {
        errno = ENODEV;
        return NULL;
    }
    struct process *process = process_join(parts);
    if (!process)
        return NULL;
    int cmd_fd = import_make_descriptor();
    struct context *context = cmd_fd < 0 ? NULL : context_make(device, process, cmd_fd);
    if (context) {
        initialize(context, ibv);
        return context;
    }
    int error = errno;
    if (cmd_fd >= 0)
        close(cmd_fd);
    process_leave(process);
    errno = error;
    return NULL;
}

/* The public device of an open context with the same file behind its cmd_fd; NULL: there is none in this process. */
static struct ibv_device *find_relative(struct process *process, int cmd_fd)
{
    struct context_identity wanted;
    struct context *each;
    struct ibv_device *found = NULL;
    if (!import_identify(cmd_fd, &wanted))
        return NULL;
    mutex_take(&process->control);
    LIST_FOREACH (each, &process->contexts, siblings)
        if (each->identity.device == wanted.device && each->identity.inode == wanted.inode)
            found = each->ibv.context.device;
    mutex_release(&process->control);
    return found;
}

struct context *context_import(int cmd_fd, const struct process_parts *parts)
{
    struct process *process = process_join(parts);
    if (!process)
        return NULL;
    struct ibv_device *ibv = find_relative(process, cmd_fd);
    int error = ibv ? 0 : import_refuse(cmd_fd);
    struct context *context = error ? NULL : context_make(device_of(ibv), process, cmd_fd);
    if (context) {
        initialize(context, ibv);
        return context;
    }
    error = error ? error : errno;
    process_leave(process);
    errno = error;
    return NULL;
}

/* What the program left behind, users before what they use. Events that it fetched and never acknowledged must not hold
 * the destruction up, and neither must a handle that it overwrote. */
static void destroy_queue(struct object *object)
{
    char *at = (char *)object;
    switch (object->kind) {
    case OBJECT_QP: {
        struct qp *qp = (struct qp *)(at - offsetof(struct qp, object));
        qp->ibv.handle = object->handle;
        qp->ibv.events_completed = qp->told.async_fetched;
        qp_leave_groups(qp);
        qp_destroy(&qp->ibv);
        return;
    }
    case OBJECT_SRQ: {
        struct srq *srq = (struct srq *)(at - offsetof(struct srq, object));
        srq->ibv.handle = object->handle;
        srq->ibv.events_completed = srq->async_fetched;
        srq_destroy(&srq->ibv);
        return;
    }
    default: {
        struct cq *cq = (struct cq *)(at - offsetof(struct cq, object));
        cq->ibv.handle = object->handle;
        cq->ibv.comp_events_completed = cq->events_fetched;
        cq->ibv.async_events_completed = cq->async_fetched;
        cq_destroy(&cq->ibv);
        return;
    }
    }
}

static void destroy_object(struct object *object)
{
    char *at = (char *)object;
    switch (object->kind) {
    case OBJECT_QP:
    case OBJECT_SRQ:
    case OBJECT_CQ:
        return destroy_queue(object);
    case OBJECT_WQ:
        return wq_abandon(object);
    case OBJECT_IND_TABLE:
        return rwq_ind_table_abandon(object);
    case OBJECT_FLOW:
        return flow_abandon(object);
    case OBJECT_COUNTERS:
        return counters_abandon(object);
    case OBJECT_AH:
        ((struct ah *)(at - offsetof(struct ah, object)))->ibv.handle = object->handle;
        ah_destroy((struct ibv_ah *)(at - offsetof(struct ah, object)));
        return;
    case OBJECT_MW:
        ((struct mw *)(at - offsetof(struct mw, object)))->ibv.handle = object->handle;
        mw_deallocate((struct ibv_mw *)(at - offsetof(struct mw, object)));
        return;
    case OBJECT_DM:
        *newer_dm_handle(&((struct dm *)(at - offsetof(struct dm, object)))->ibv) = object->handle;
        dm_free((struct ibv_dm *)(at - offsetof(struct dm, object)));
        return;
    case OBJECT_MR:
        ((struct mr *)(at - offsetof(struct mr, object)))->ibv.handle = object->handle;
        mr_deregister((struct ibv_mr *)(at - offsetof(struct mr, object)));
        return;
    case OBJECT_CHANNEL:
        comp_channel_destroy((struct ibv_comp_channel *)(at - offsetof(struct comp_channel, object)));
        return;
    case OBJECT_TD:
        domain_deallocate_td((struct ibv_td *)(at - offsetof(struct td, object)));
        return;
    case OBJECT_COMP_CNTR:
        return comp_cntr_abandon(object);
    case OBJECT_DMAH:
        return dmah_abandon(object);
    case OBJECT_XRCD:
        xrcd_close((struct ibv_xrcd *)(at - offsetof(struct xrcd, object)));
        return;
    default:
        ((struct pd *)(at - offsetof(struct pd, object)))->ibv.handle = object->handle;
        context_deallocate_pd((struct ibv_pd *)(at - offsetof(struct pd, object)));
    }
}

static void destroy_kinds(struct context *context, const enum object_kind *kinds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t left = context->counts[kinds[i]];
        if (left)
            log_reason(LOG_INFO, REASON_LEFT_OVER, "ibv_close_device: %u objects of kind %d", left, kinds[i]);
        while (left--)
            destroy_object(LIST_FIRST(&context->objects[kinds[i]]));
    }
}

/* ibv_close_device(3) does not release what was allocated, and does not refuse either: what remains goes with the
 * context, as it does when the kernel closes the device. What a context of the family may have imported goes with the
 * last of them. */
static void destroy_rest(struct context *context)
{
    static const enum object_kind users[] = {OBJECT_FLOW, OBJECT_COUNTERS, OBJECT_QP,      OBJECT_IND_TABLE,
                                             OBJECT_WQ,   OBJECT_SRQ,      OBJECT_XRCD,    OBJECT_AH,
                                             OBJECT_MW,   OBJECT_CQ,       OBJECT_CHANNEL, OBJECT_COMP_CNTR};
    static const enum object_kind shared[] = {OBJECT_MR, OBJECT_DMAH, OBJECT_DM, OBJECT_PARENT_DOMAIN,
                                              OBJECT_TD, OBJECT_PD};
    domain_abandon(context);
    destroy_kinds(context, users, sizeof users / sizeof *users);
    control_lock(context);
    import_close(context);
    control_unlock(context);
    destroy_kinds(context, shared, sizeof shared / sizeof *shared);
}

void context_close(struct context *context)
{
    struct process *process = context->process;
    destroy_rest(context);
    mutex_take(&process->control);
    LIST_REMOVE(context, siblings);
    mutex_release(&process->control);
    process_leave(process);
    close(context->ibv.context.cmd_fd);
    async_destroy(&context->async);
    pthread_mutex_destroy(&context->ibv.context.mutex);
    free(context);
}

struct ibv_pd *context_allocate_pd(struct ibv_context *ibv)
{
    struct context *context = context_of(ibv);
    struct pd *pd = calloc(1, sizeof *pd);
    if (!pd)
        return NULL;
    pd->ibv.context = ibv;
    control_lock(context);
    pd->ibv.handle = object_enter(context, &pd->object, OBJECT_PD, context->device->limits.max_pd, NULL);
    control_unlock(context);
    if (pd->ibv.handle)
        return &pd->ibv;
    free(pd);
    return NULL;
}

int context_deallocate_pd(struct ibv_pd *ibv)
{
    if (domain_of(ibv))
        return domain_deallocate(ibv);
    struct pd *pd = pd_of(ibv);
    struct context *context = pd->object.context;
    if (!object_is_here(&((struct pd *)ibv)->object, context_of(ibv->context)))
        return ENOENT;
    control_lock(context);
    int error = object_leave(&pd->object, ibv->handle, NULL);
    if (!error)
        import_release(&((struct pd *)ibv)->object);
    control_unlock(context);
    return error;
}
