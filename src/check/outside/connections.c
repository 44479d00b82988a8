#include "check/outside/connections.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "check/hooks_call.h"
#include "check/outside/acknowledged.h"
#include "check/outside/loaded.h"
#include "check/outside/rdma_cma.h"
#include "check/shadow/event_count.h"

/* The functions of librdmacm that are replaced, each by the function see_ with the rest of its name. */
#define SEEN_ALL                                                                                                       \
    SEEN(struct rdma_event_channel *, create_event_channel, (void))                                                    \
    SEEN(void, destroy_event_channel, (struct rdma_event_channel *))                                                   \
    SEEN(int, create_id, (struct rdma_event_channel *, struct rdma_cm_id **, void *, int))                             \
    SEEN(int, create_ep, (struct rdma_cm_id **, struct rdma_addrinfo *, struct ibv_pd *, struct ibv_qp_init_attr *))   \
    SEEN(int, get_request, (struct rdma_cm_id *, struct rdma_cm_id **))                                                \
    SEEN(int, destroy_id, (struct rdma_cm_id *))                                                                       \
    SEEN(void, destroy_ep, (struct rdma_cm_id *))                                                                      \
    SEEN(int, migrate_id, (struct rdma_cm_id *, struct rdma_event_channel *))                                          \
    SEEN(int, get_cm_event, (struct rdma_event_channel *, struct rdma_cm_event **))                                    \
    SEEN(int, ack_cm_event, (struct rdma_cm_event *))                                                                  \
    SEEN(int, connect, (struct rdma_cm_id *, struct rdma_conn_param *))                                                \
    SEEN(int, accept, (struct rdma_cm_id *, struct rdma_conn_param *))                                                 \
    SEEN(int, establish, (struct rdma_cm_id *))                                                                        \
    SEEN(int, disconnect, (struct rdma_cm_id *))

/* librdmacm's own functions, in the order of `entries`; written before the program runs. */
static struct {
#define SEEN(type, name, parameters) type(*name) parameters;
    SEEN_ALL
#undef SEEN
} own;

/* -- making */

/* Notes an identifier; `channel` is NULL for a synchronous one. */
static void note_id(const struct rdma_cm_id *id, const void *channel, int port_space)
{
    struct place here;
    place_here(&here);
    shadow_lock();
    struct shadow *shadow = shadow_add(SHADOW_CM_ID, id, 0, &here);
    if (shadow) {
        shadow->cm.channel = channel;
        shadow->cm.port_space = port_space;
    }
    shadow_unlock();
}

static struct rdma_event_channel *see_create_event_channel(void)
{
    struct rdma_event_channel *channel = own.create_event_channel();
    struct place here;
    if (!channel)
        return channel;
    place_here(&here);
    shadow_lock();
    shadow_add(SHADOW_CM_CHANNEL, channel, (uint32_t)channel->fd, &here);
    shadow_unlock();
    return channel;
}

static int see_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, int port_space)
{
    int result = own.create_id(channel, id, context, port_space);
    if (!result)
        note_id(*id, channel, port_space);
    return result;
}

static int see_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *address, struct ibv_pd *pd,
                         struct ibv_qp_init_attr *attr)
{
    int port_space = address ? address->ai_port_space : 0, result = own.create_ep(id, address, pd, attr);
    if (!result)
        note_id(*id, NULL, port_space);
    return result;
}

static int port_space_of(const struct rdma_cm_id *id)
{
    shadow_lock();
    const struct shadow *shadow = shadow_find(SHADOW_CM_ID, id);
    int port_space = shadow ? shadow->cm.port_space : 0;
    shadow_unlock();
    return port_space;
}

static int see_get_request(struct rdma_cm_id *listener, struct rdma_cm_id **id)
{
    int result = own.get_request(listener, id);
    if (!result)
        note_id(*id, NULL, port_space_of(listener));
    return result;
}

/* -- events */

/* Returns the identifier that waits for the acknowledgement: of a request for a connection the listener. */
static const struct rdma_cm_id *owner_of(const struct rdma_cm_event *event)
{
    return event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->listen_id : event->id;
}

static void note_request(const struct rdma_cm_event *event)
{
    note_id(event->id, event->listen_id->channel, port_space_of(event->listen_id));
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_CM_ID, event->id);
    if (shadow) {
        shadow->cm.asks = true;
        shadow->cm.depth = event->conn.initiator_depth;
        shadow->cm.resources = event->conn.responder_resources;
    }
    shadow_unlock();
}

static void note_connected(const struct rdma_cm_id *id, bool connected)
{
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_CM_ID, id);
    if (shadow)
        shadow->cm.connected = connected && shadow->cm.port_space == RDMA_PS_TCP;
    shadow_unlock();
}

static int see_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    int result = own.get_cm_event(channel, event);
    if (result)
        return result;
    shadow_lock();
    acknowledged_remove(*event);
    shadow_unlock();
    event_count(SHADOW_CM_ID, owner_of(*event), 1, 0);
    if ((*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST)
        note_request(*event);
    if ((*event)->event == RDMA_CM_EVENT_ESTABLISHED)
        note_connected((*event)->id, true);
    if ((*event)->event == RDMA_CM_EVENT_DISCONNECTED || (*event)->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
        note_connected((*event)->id, false);
    return result;
}

/* librdmacm itself fetches the events of a synchronous identifier, unseen, and they may have the memory of earlier
 * ones. */
static bool is_any_synchronous(void)
{
    const struct shadow *shadow;
    TAILQ_FOREACH (shadow, shadow_all(), siblings)
        if (shadow->kind == SHADOW_CM_ID && !shadow->cm.channel)
            return true;
    return false;
}

/* Returns true if the event was acknowledged before; notes that it is now. */
static bool was_acknowledged(const struct rdma_cm_event *event)
{
    struct place here;
    place_here(&here);
    shadow_lock();
    const struct place *first = is_any_synchronous() ? NULL : acknowledged_find(event);
    if (first)
        HOOKS_CALL(cm.acknowledged_again, first);
    else
        acknowledged_add(event, &here);
    shadow_unlock();
    return first;
}

/* Counts before it calls the library, which may wake a thread that destroys the identifier. */
static int see_ack_cm_event(struct rdma_cm_event *event)
{
    if (event && was_acknowledged(event))
        return errno = EINVAL, -1;
    if (event)
        event_count(SHADOW_CM_ID, owner_of(event), 0, 1);
    return own.ack_cm_event(event);
}

/* -- connecting */

static int refuse_gone(const struct rdma_cm_id *id, const char *call)
{
    if (!hooks_is_gone(SHADOW_CM_ID, id, call))
        return 0;
    return errno = EINVAL, -1;
}

/* Notes the connection of a synchronous identifier, whose call returns when the connection is there. */
static void note_synchronous(const struct rdma_cm_id *id)
{
    shadow_lock();
    const struct shadow *shadow = shadow_find(SHADOW_CM_ID, id);
    bool synchronous = shadow && !shadow->cm.channel;
    shadow_unlock();
    if (synchronous)
        note_connected(id, true);
}

static int see_connect(struct rdma_cm_id *id, struct rdma_conn_param *parameters)
{
    if (refuse_gone(id, "rdma_connect"))
        return -1;
    int result = own.connect(id, parameters);
    if (!result)
        note_synchronous(id);
    return result;
}

static int see_accept(struct rdma_cm_id *id, struct rdma_conn_param *parameters)
{
    if (refuse_gone(id, "rdma_accept"))
        return -1;
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_CM_ID, id);
    if (shadow && shadow->cm.asks && shadow->cm.port_space == RDMA_PS_TCP && parameters)
        HOOKS_CALL(cm.accepting, shadow, parameters->initiator_depth);
    shadow_unlock();
    int result = own.accept(id, parameters);
    if (!result)
        note_synchronous(id);
    return result;
}

static int see_establish(struct rdma_cm_id *id)
{
    int result = own.establish(id);
    if (!result)
        note_connected(id, true);
    return result;
}

static int see_disconnect(struct rdma_cm_id *id)
{
    if (refuse_gone(id, "rdma_disconnect"))
        return -1;
    note_connected(id, false);
    return own.disconnect(id);
}

/* -- destroying */

/* Returns true if another thread has fetched an event that it may be about to acknowledge. */
static bool may_be_acknowledged(const struct rdma_cm_id *id)
{
    shadow_lock();
    const struct shadow *shadow = shadow_find(SHADOW_CM_ID, id);
    bool may = shadow && event_count_open(shadow) && event_count_is_others(shadow);
    shadow_unlock();
    return may;
}

/* Waits up to half a second for another thread's acknowledgement, for which the library would wait, too. */
static void await_acknowledgements(const struct rdma_cm_id *id)
{
    enum { STEP = 5000 /* us */, STEPS = 100 };
    for (unsigned step = 0; step < STEPS && may_be_acknowledged(id); step++)
        usleep(STEP);
}

static void tell_destroying(const struct rdma_cm_id *id, bool keeps_qp)
{
    await_acknowledgements(id);
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_CM_ID, id);
    if (shadow) {
        shadow->cm.keeps_qp = keeps_qp && shadow_find(SHADOW_QP, id->qp); /* or ibv_destroy_qp has ended it */
        HOOKS_CALL(destroying, shadow);
    }
    shadow_unlock();
}

/* Notes the end before the library frees the object, as another object may get its address then. */
static void note_end(enum shadow_kind kind, const void *handle)
{
    struct place here;
    place_here(&here);
    shadow_lock();
    struct shadow *shadow = shadow_find(kind, handle);
    if (shadow)
        shadow_remove(shadow, &here);
    shadow_unlock();
}

static int see_destroy_id(struct rdma_cm_id *id)
{
    if (refuse_gone(id, "rdma_destroy_id"))
        return -1;
    tell_destroying(id, true);
    note_end(SHADOW_CM_ID, id);
    return own.destroy_id(id);
}

static void see_destroy_ep(struct rdma_cm_id *id)
{
    if (refuse_gone(id, "rdma_destroy_ep"))
        return;
    tell_destroying(id, false);
    note_end(SHADOW_CM_ID, id);
    own.destroy_ep(id);
}

static int see_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
    await_acknowledgements(id);
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_CM_ID, id);
    if (shadow)
        HOOKS_CALL(cm.migrating, shadow);
    if (shadow)
        shadow->cm.channel = channel;
    shadow_unlock();
    return own.migrate_id(id, channel);
}

static void see_destroy_event_channel(struct rdma_event_channel *channel)
{
    shadow_lock();
    struct shadow *shadow = shadow_find(SHADOW_CM_CHANNEL, channel);
    if (shadow)
        HOOKS_CALL(destroying, shadow);
    shadow_unlock();
    note_end(SHADOW_CM_CHANNEL, channel);
    own.destroy_event_channel(channel);
}

static const struct imports_entry entries[] = {
#define SEEN(type, name, parameters) {"rdma_" #name, (imports_function *)see_##name},
    SEEN_ALL
#undef SEEN
};

/* An older librdmacm lacks some of the functions, which programs do not import then. dlsym asks the library itself: in
 * a program at a fixed address the function's name may mean a stub (outside/loaded.h), which would lead here. */
void connections_begin(void)
{
    void *library = dlopen("librdmacm.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!library) {
        dlerror();
        return;
    }
#define SEEN(type, name, parameters) own.name = (type(*) parameters)dlsym(library, "rdma_" #name);
    SEEN_ALL
#undef SEEN
    dlclose(library); /* the program keeps it loaded */
    dlerror();
    if (!own.get_cm_event)
        return;
    place_leave_out((const void *)own.get_cm_event);
    loaded_replace(entries, (loaded_original *)&own, sizeof entries / sizeof *entries, "librdmacm.so");
}
