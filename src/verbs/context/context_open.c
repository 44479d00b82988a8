#include "verbs/context/context_open.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls/handle.h"
#include "config/config.h"
#include "config/device_identity.h"
#include "diag/log.h"
#include "diag/sentence.h"
#include "events/refusal.h"
#include "process/port_state.h"
#include "verbs/context/device.h"
#include "verbs/context/import.h"
#include "verbs/disturb/disturb.h"
#include "verbs/object/async.h"
#include "verbs/object/control.h"
#include "verbs/object/domain.h"

/* Vendor libraries (libmlx5, libefa) look for their own operations in the words after a struct ibv_device: these
 * words must exist, and be zero. */
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

/* Lists the devices. Called once, by pthread_once(3): a fork in the middle of another thread's call does no harm. */
static void list_devices(void)
{
    CONFIG_EACH (device)
        context_fill(&listed[device->index], device);
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
    shown->abi_compat = (void *)UINTPTR_MAX; /* a verbs_context is around this struct */
    shown->device = ibv;
    shown->async_fd = context->async.pipe.fd;
    shown->num_comp_vectors = DEVICE_COMP_VECTORS;
    pthread_mutex_init(&shown->mutex, NULL);
    port_state_learn(context->process, context->device);
    mutex_take(&context->process->control);
    LIST_INSERT_HEAD(&process_objects(context->process)->contexts, context, siblings);
    delayed_port_begin(context);
    mutex_release(&context->process->control);
}

/* Makes a context that is in no list yet; NULL and errno, and then the descriptor stays the caller's. */
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

/* Makes a descriptor for the context, which programs pass on to import the device elsewhere. */
struct context *context_open(struct ibv_device *ibv, const struct process_parts *parts)
{
    const struct device *device = device_of(ibv);
    if (!device)
        return refused_null(refuse(ENODEV, REASON_NO_DEVICE, "device %s", ibv->name));
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

/* Returns the public device of an open context whose cmd_fd is the same file; NULL: there is no such context here. */
static struct ibv_device *find_relative(struct process *process, int cmd_fd)
{
    struct context_identity wanted;
    struct context *each;
    struct ibv_device *found = NULL;
    if (!import_identify(cmd_fd, &wanted))
        return NULL;
    mutex_take(&process->control);
    LIST_FOREACH (each, &process_objects(process)->contexts, siblings)
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

static void destroy_list(struct object_list *list, uint32_t count)
{
    const struct object_class *class = object_class_of(list);
    if (count)
        log_reason(LOG_INFO, REASON_LEFT_OVER, "ibv_close_device: %u object%s of kind %s", count, plural(count),
                   class->name);
    for (; count; count--)
        class->destroy(LIST_FIRST(list));
}

static void destroy_kinds(struct context *context, enum object_kind from, enum object_kind to)
{
    for (enum object_kind kind = from; kind < to; kind++)
        destroy_list(&context->objects[kind], context->counts[kind]);
}

/* ibv_close_device(3) does not release the program's objects, and does not refuse either: they end with the context,
 * as they do when the kernel closes the device. Objects that a context of the family may have imported end with the
 * last context of the family. */
static void destroy_rest(struct context *context)
{
    domain_abandon(context);
    destroy_kinds(context, 0, OBJECT_FIRST_SHARED);
    control_lock(context);
    import_close(context);
    control_unlock(context);
    destroy_kinds(context, OBJECT_FIRST_SHARED, OBJECT_KINDS);
}

static void free_context(struct context *context)
{
    while (context && !LIST_EMPTY(&context->left)) {
        struct object *object = LIST_FIRST(&context->left);
        LIST_REMOVE(object, siblings);
        handle_free(object_whole(object));
    }
    if (context)
        handle_free(context);
}

/* Keeps the last contexts whose objects the program left, in a ring. The program may still destroy such objects, as
 * destructors of C++ do in an unlucky order; functions of the public header read the context before they call. */
static void keep_context(struct context *context)
{
    enum { KEPT = 32 };
    static _Atomic(struct context *) kept[KEPT];
    static atomic_uint next;
    context->process = NULL;
    free_context(atomic_exchange(&kept[atomic_fetch_add(&next, 1) % KEPT], context));
}

void context_close(struct context *context)
{
    struct process *process = context->process;
    context->closing = true;
    destroy_rest(context);
    calls_leave(&context->calls);
    mutex_take(&process->control);
    LIST_REMOVE(context, siblings);
    mutex_release(&process->control);
    process_leave(process);
    close(context->ibv.context.cmd_fd);
    async_destroy(&context->async);
    pthread_mutex_destroy(&context->ibv.context.mutex);
    if (LIST_EMPTY(&context->left))
        free_context(context);
    else
        keep_context(context);
}
