#include "verbs/context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/log.h"
#include "verbs/ah.h"
#include "verbs/async.h"
#include "verbs/channel.h"
#include "verbs/config.h"
#include "verbs/counters.h"
#include "verbs/cq.h"
#include "verbs/device.h"
#include "verbs/dm.h"
#include "verbs/dmah.h"
#include "verbs/domain.h"
#include "verbs/event.h"
#include "verbs/flow.h"
#include "verbs/gsi.h"
#include "verbs/identity.h"
#include "verbs/import.h"
#include "verbs/lifetime.h"
#include "verbs/memory.h"
#include "verbs/port.h"
#include "verbs/process.h"
#include "verbs/qp.h"
#include "verbs/srq.h"
#include "verbs/window.h"
#include "verbs/wq.h"
#include "verbs/xrcd.h"

/* Vendor libraries (libmlx5, libefa) look for their own operations in the words behind a struct ibv_device: those
 * must be there, and zero. */
struct listed_device {
    struct ibv_device public;
    char zero[128];
    const struct device *device;
};

static struct listed_device listed[DEVICES_MAX];

static void fill(struct listed_device *entry, const struct device *device)
{
    struct ibv_device *public = &entry->public;
    entry->device = device;
    public->node_type = IBV_NODE_CA;
    public->transport_type = IBV_TRANSPORT_IB;
    snprintf(public->name, sizeof public->name, "%s", device->name);
    snprintf(public->dev_name, sizeof public->dev_name, IDENTITY_DEVICE_NODE "%u", device->index);
    snprintf(public->dev_path, sizeof public->dev_path, "/sys/class/infiniband_verbs/uverbs%u", device->index);
    snprintf(public->ibdev_path, sizeof public->ibdev_path, "/sys/class/infiniband/%.63s", device->name);
}

/* Once, which a fork in another thread's midst does not disturb. */
static void list_devices(void)
{
    unsigned count;
    const struct device *devices = config_devices(&count);
    for (unsigned i = 0; i < count; i++)
        fill(&listed[i], &devices[i]);
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
        list[i] = &listed[i].public;
    if (number)
        *number = (int)count;
    return list;
}

static const struct device *device_of(struct ibv_device *public)
{
    for (unsigned i = 0; i < DEVICES_MAX; i++)
        if (&listed[i].public == public)
            return listed[i].device;
    return NULL;
}

__be64 context_device_guid(struct ibv_device *public)
{
    const struct device *device = device_of(public);
    __be64 guid = 0;
    if (device)
        memcpy(&guid, device->guid, sizeof guid);
    return guid;
}

static void initialize(struct context *context, struct ibv_device *public)
{
    struct ibv_context *ibv = &context->public.context;
    context->public.sz = sizeof context->public;
    ibv->abi_compat = (void *)UINTPTR_MAX; /* says that a verbs_context is around this one */
    ibv->device = public;
    ibv->async_fd = context->async.fd;
    ibv->num_comp_vectors = DEVICE_COMP_VECTORS;
    pthread_mutex_init(&ibv->mutex, NULL);
    event_learn_port(context->process, context->device);
    mutex_take(&context->process->control);
    LIST_INSERT_HEAD(&context->process->contexts, context, siblings);
    mutex_release(&context->process->control);
}

/* A context that is in no list yet; NULL and errno. The descriptor stays the caller's when that fails. */
static struct context *make(const struct device *device, struct process *process, int cmd_fd)
{
    mutex_take(&process->control);
    int error = port_open(process, device);
    if (!error)
        gsi_serve(process, device);
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
    context->public.context.cmd_fd = cmd_fd;
    error = import_identify(cmd_fd, &context->identity) ? async_initialize(&context->async) : errno;
    if (!error)
        return context;
    free(context);
    errno = error;
    return NULL;
}

/* Programs pass the descriptor on to import the device elsewhere. */
struct context *context_open(struct ibv_device *public)
{
    const struct device *device = device_of(public);
    if (!device) {
        errno = ENODEV;
        return NULL;
    }
    struct process *process = process_join();
    if (!process)
        return NULL;
    int cmd_fd = import_make_descriptor();
    struct context *context = cmd_fd < 0 ? NULL : make(device, process, cmd_fd);
    if (context) {
        initialize(context, public);
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
    LIST_FOREACH(each, &process->contexts, siblings)
    if (each->identity.device == wanted.device && each->identity.inode == wanted.inode)
        found = each->public.context.device;
    mutex_release(&process->control);
    return found;
}

struct context *context_import(int cmd_fd)
{
    struct process *process = process_join();
    if (!process)
        return NULL;
    struct ibv_device *public = find_relative(process, cmd_fd);
    int error = public ? 0 : import_refuse(cmd_fd);
    struct context *context = error ? NULL : make(device_of(public), process, cmd_fd);
    if (context) {
        initialize(context, public);
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
        qp->public.handle = object->handle;
        qp->public.events_completed = qp->async_fetched;
        qp_leave_groups(qp);
        qp_destroy(&qp->public);
        return;
    }
    case OBJECT_SRQ: {
        struct srq *srq = (struct srq *)(at - offsetof(struct srq, object));
        srq->public.handle = object->handle;
        srq->public.events_completed = srq->async_fetched;
        srq_destroy(&srq->public);
        return;
    }
    default: {
        struct cq *cq = (struct cq *)(at - offsetof(struct cq, object));
        cq->public.handle = object->handle;
        cq->public.comp_events_completed = cq->events_fetched;
        cq->public.async_events_completed = cq->async_fetched;
        cq_destroy(&cq->public);
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
        return wq_table_abandon(object);
    case OBJECT_FLOW:
        return flow_abandon(object);
    case OBJECT_COUNTERS:
        return counters_abandon(object);
    case OBJECT_AH:
        ((struct ah *)(at - offsetof(struct ah, object)))->public.handle = object->handle;
        ah_destroy((struct ibv_ah *)(at - offsetof(struct ah, object)));
        return;
    case OBJECT_MW:
        ((struct mw *)(at - offsetof(struct mw, object)))->public.handle = object->handle;
        window_deallocate((struct ibv_mw *)(at - offsetof(struct mw, object)));
        return;
    case OBJECT_DM:
        *newer_dm_handle(&((struct dm *)(at - offsetof(struct dm, object)))->public) = object->handle;
        dm_free((struct ibv_dm *)(at - offsetof(struct dm, object)));
        return;
    case OBJECT_MR:
        ((struct mr *)(at - offsetof(struct mr, object)))->public.handle = object->handle;
        memory_deregister((struct ibv_mr *)(at - offsetof(struct mr, object)));
        return;
    case OBJECT_CHANNEL:
        channel_destroy((struct ibv_comp_channel *)(at - offsetof(struct channel, object)));
        return;
    case OBJECT_TD:
        domain_deallocate_td((struct ibv_td *)(at - offsetof(struct td, object)));
        return;
    case OBJECT_DMAH:
        return dmah_abandon(object);
    case OBJECT_XRCD:
        xrcd_close((struct ibv_xrcd *)(at - offsetof(struct xrcd, object)));
        return;
    default:
        ((struct pd *)(at - offsetof(struct pd, object)))->public.handle = object->handle;
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
    static const enum object_kind users[] = {OBJECT_FLOW, OBJECT_COUNTERS, OBJECT_QP,     OBJECT_IND_TABLE,
                                             OBJECT_WQ,   OBJECT_SRQ,      OBJECT_XRCD,   OBJECT_AH,
                                             OBJECT_MW,   OBJECT_CQ,       OBJECT_CHANNEL};
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
    close(context->public.context.cmd_fd);
    async_destroy(&context->async);
    pthread_mutex_destroy(&context->public.context.mutex);
    free(context);
}

struct ibv_pd *context_allocate_pd(struct ibv_context *public)
{
    struct context *context = context_of(public);
    struct pd *pd = calloc(1, sizeof *pd);
    if (!pd)
        return NULL;
    pd->public.context = public;
    control_lock(context);
    pd->public.handle = object_enter(context, &pd->object, OBJECT_PD, context->device->limits.max_pd, NULL);
    control_unlock(context);
    if (pd->public.handle)
        return &pd->public;
    free(pd);
    return NULL;
}

int context_deallocate_pd(struct ibv_pd *public)
{
    if (domain_of(public))
        return domain_deallocate(public);
    struct pd *pd = pd_of(public);
    struct context *context = pd->object.context;
    control_lock(context);
    int error = object_leave(&pd->object, public->handle, NULL);
    if (!error)
        import_release(&((struct pd *)public)->object);
    control_unlock(context);
    return error;
}
