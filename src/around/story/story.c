#include "around/story/story.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "around/story/story_record.h"
#include "around/turned.h"
#include "base/container.h"
#include "base/read_clock.h"
#include "base/settings.h"
#include "calls/questions.h"
#include "check/findings/deferred.h"
#include "check/hooks_call.h"

enum { BUCKETS = 1 << 12, STORIES_MOST = 1000 };

static struct hash_entry *buckets[BUCKETS];
static const struct hash all = {buckets, BUCKETS - 1};
static struct story_port *ports;
static struct story_regions regions;
static unsigned written;

static nanos now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static struct story_qp *find_story(const struct shadow *qp)
{
    shadow_assert_locked();
    struct hash_entry *entry = qp->kind == SHADOW_QP ? hash_find(&all, qp->serial, NULL) : NULL;
    return entry ? container_of(entry, struct story_qp, by_serial) : NULL;
}

static void begin_qp(struct shadow *qp)
{
    struct story_qp *story = qp->kind == SHADOW_QP ? calloc(1, sizeof *story) : NULL;
    if (!story)
        return;
    story->number = qp->number;
    story->type = qp->qp.type;
    hash_add((struct hash *)&all, &story->by_serial, qp->serial);
}

/* -- ports */

struct reading {
    struct deferred deferred;
    struct story_port *port;
    struct port_counters counters;
};

static void read_first(struct deferred *deferred)
{
    struct reading *reading = container_of(deferred, struct reading, deferred);
    struct story_port *port = reading->port;
    port_read(port->path, port->number, &reading->counters);
    shadow_lock();
    if (!port->since) {
        port->before = reading->counters;
        port->since = now();
    }
    shadow_unlock();
    free(reading);
}

static struct story_port *add_port(const struct ibv_device *device, uint8_t number)
{
    struct story_port *port = calloc(1, sizeof *port);
    struct reading *reading = calloc(1, sizeof *reading);
    if (!port || !reading) {
        free(port);
        free(reading);
        return NULL;
    }
    snprintf(port->path, sizeof port->path, "%s", device->ibdev_path);
    snprintf(port->device, sizeof port->device, "%s", device->name);
    port_driver(device, port->driver);
    port->number = number;
    port->next = ports;
    ports = port;
    *reading = (struct reading){.deferred.run = read_first, .port = port};
    deferred_add(&reading->deferred);
    return port;
}

static struct story_port *find_story_port(const struct ibv_device *device, uint8_t number)
{
    struct story_port *port = ports;
    while (port && (port->number != number || strcmp(port->path, device->ibdev_path) != 0))
        port = port->next;
    return port ? port : add_port(device, number);
}

/* -- states and attributes */

static void keep_attributes(struct ibv_qp_attr *kept, const struct ibv_qp_attr *attr, int mask)
{
#define KEEP(flag, member)                                                                                             \
    if (mask & IBV_QP_##flag)                                                                                          \
        kept->member = attr->member;
    KEEP(ACCESS_FLAGS, qp_access_flags)
    KEEP(TIMEOUT, timeout)
    KEEP(RETRY_CNT, retry_cnt)
    KEEP(RNR_RETRY, rnr_retry)
    KEEP(RQ_PSN, rq_psn)
    KEEP(SQ_PSN, sq_psn)
    KEEP(DEST_QPN, dest_qp_num)
    KEEP(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic)
    KEEP(AV, ah_attr)
#undef KEEP
}

static void note_state(struct story_qp *story, enum ibv_qp_state state)
{
    if (state == story->state)
        return;
    last_events_note(&story->events, EVENT_QP_STATE, 0, story->state, state);
    story->state = state;
}

static void note_change(struct shadow *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct story_qp *story = find_story(qp);
    const struct ibv_qp *handle = qp->handle;
    if (!story)
        return;
    if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET) {
        story->given = 0;
        story->failure = (struct story_failure){0};
        story->flushed_sends = story->flushed_receives = 0;
        story->event = NULL;
    }
    story->given |= mask;
    keep_attributes(&story->attr, attr, mask);
    if (mask & IBV_QP_PORT)
        story->port = find_story_port(handle->context->device, attr->port_num);
    if (!(mask & IBV_QP_STATE))
        return;
    story->moved = attr->qp_state == IBV_QPS_ERR && story->state != IBV_QPS_ERR;
    note_state(story, attr->qp_state);
}

static void note_event(const struct ibv_async_event *event)
{
    static const char *const names[] = {[IBV_EVENT_QP_FATAL] = "IBV_EVENT_QP_FATAL",
                                        [IBV_EVENT_QP_REQ_ERR] = "IBV_EVENT_QP_REQ_ERR",
                                        [IBV_EVENT_QP_ACCESS_ERR] = "IBV_EVENT_QP_ACCESS_ERR"};
    unsigned type = event->event_type;
    const struct shadow *qp =
        type < sizeof names / sizeof *names && names[type] ? shadow_find(SHADOW_QP, event->element.qp) : NULL;
    struct story_qp *story = qp ? find_story(qp) : NULL;
    if (!story)
        return;
    story->event = names[type];
    note_state(story, IBV_QPS_ERR);
}

/* -- regions */

static void add_region(struct shadow *shadow)
{
    const struct ibv_mr *mr = shadow->handle;
    regions.others |= !shadow->mr.address;
    if (!shadow->mr.address) /* of a device, a GPU, or nothing */
        return;
    struct story_region *region = &regions.list[regions.made++ % STORY_REGIONS];
    *region = (struct story_region){.context = mr->context,
                                    .address = shadow->mr.iova,
                                    .base = (uintptr_t)shadow->mr.address,
                                    .length = shadow->mr.length,
                                    .lkey = mr->lkey,
                                    .rkey = mr->rkey,
                                    .pd = calls_questions->protection(mr->pd)->handle,
                                    .access = shadow->mr.access};
    snprintf(region->device, sizeof region->device, "%s", mr->context->device->name);
}

static struct story_region *find_region(const struct ibv_context *context, uint32_t lkey)
{
    for (unsigned back = 1; back <= STORY_REGIONS && back <= regions.made; back++) {
        struct story_region *region = &regions.list[(regions.made - back) % STORY_REGIONS];
        if (region->context == context && region->lkey == lkey)
            return region;
    }
    return NULL;
}

static void end_region(const struct shadow *mr)
{
    for (unsigned at = 0; at < STORY_REGIONS && at < regions.made; at++) {
        struct story_region *region = &regions.list[at];
        if (region->base == (uintptr_t)mr->mr.address && region->length == mr->mr.length && !region->gone &&
            region->context == mr->context && mr->by_number.key == region->lkey)
            region->gone = now();
    }
}

/* -- failures */

/* What is wrong with a local buffer; 0: nothing that is known. */
static enum reason judge_buffer(const struct ibv_sge *sge, bool writes, const struct ibv_pd *pd,
                                struct story_memory *memory)
{
    const struct story_region *region = find_region(pd->context, sge->lkey);
    *memory = (struct story_memory){.refused = true,
                                    .key = sge->lkey,
                                    .address = sge->addr,
                                    .length = sge->length,
                                    .access = writes ? IBV_ACCESS_LOCAL_WRITE : 0,
                                    .known = region};
    if (!region)
        return regions.made <= STORY_REGIONS && !regions.others ? REASON_LOCAL_KEY_UNKNOWN : 0;
    memory->base = region->address; /* elements name it as peers do (ibv_reg_mr_iova(3)) */
    memory->size = region->length;
    memory->has = (uint32_t)region->access;
    memory->gone = region->gone;
    if (region->gone)
        return REASON_LOCAL_KEY_UNKNOWN;
    if (region->pd != pd->handle) {
        memory->pd = region->pd;
        return REASON_LOCAL_PD;
    }
    if (sge->addr < region->address || sge->length > region->length ||
        sge->addr - region->address > region->length - sge->length)
        return REASON_LOCAL_RANGE;
    return writes && !(region->access & IBV_ACCESS_LOCAL_WRITE) ? REASON_LOCAL_PERMISSION : 0;
}

static enum reason judge_buffers(const struct shadow *qp, const struct wqe *wqe, struct story_memory *memory)
{
    const struct ibv_qp *handle = qp->handle;
    const struct ibv_pd *pd = calls_questions->protection(handle->pd);
    enum reason reason = 0;
    for (unsigned at = 0; at < wqe->count && !reason && !(wqe->flags & WQE_INLINE); at++)
        reason = judge_buffer(&wqe->sges[at], wqe->flags & WQE_WRITES, pd, memory);
    if (!reason)
        *memory = (struct story_memory){0};
    return reason && wqe->flags & WQE_RECEIVE ? reason + (REASON_RECEIVE_KEY_UNKNOWN - REASON_LOCAL_KEY_UNKNOWN)
                                              : reason;
}

/* The reason that says the same as the status. */
static enum reason reason_of(const struct shadow *qp, const struct wqe *wqe, enum ibv_wc_status status,
                             struct story_memory *memory)
{
    static const enum reason reasons[] = {[IBV_WC_RETRY_EXC_ERR] = REASON_RETRY_EXCEEDED,
                                          [IBV_WC_RNR_RETRY_EXC_ERR] = REASON_RNR_EXCEEDED,
                                          [IBV_WC_REM_INV_REQ_ERR] = REASON_REMOTE_INVALID_REQUEST,
                                          [IBV_WC_REM_ACCESS_ERR] = REASON_REMOTE_ACCESS,
                                          [IBV_WC_REM_OP_ERR] = REASON_REMOTE_OPERATION,
                                          [IBV_WC_BAD_RESP_ERR] = REASON_BAD_RESPONSE};
    enum reason reason = status < sizeof reasons / sizeof *reasons ? reasons[status] : 0;
    if (status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_QP_OP_ERR) /* rxe of Linux 6.1 */
        reason = judge_buffers(qp, wqe, memory);
    if (status == IBV_WC_LOC_LEN_ERR && wqe->flags & WQE_RECEIVE)
        reason = REASON_RECEIVE_TOO_SHORT;
    return reason ? reason : REASON_ADAPTER_STATUS;
}

static void note_failure(struct story_qp *story, const struct shadow *qp, const struct wqe *wqe,
                         const struct calls_completion *completion)
{
    struct story_failure *failure = &story->failure;
    *failure = (struct story_failure){.time = now(),
                                      .posted = wqe->when,
                                      .wr_id = wqe->wr_id,
                                      .remote = wqe->remote,
                                      .length = wqe->length,
                                      .rkey = wqe->rkey,
                                      .opcode = wqe->opcode,
                                      .status = (uint8_t)completion->status,
                                      .receive = wqe->flags & WQE_RECEIVE,
                                      .place = wqe->posted};
    bool scripted = turned_has(qp->handle);
    failure->vendor_err = scripted ? 0 : completion->vendor_err;
    failure->reason = (uint16_t)(scripted ? REASON_SCRIPTED : reason_of(qp, wqe, completion->status, &failure->memory));
    note_state(story, IBV_QPS_ERR);
}

/* -- writing */

struct telling {
    struct deferred deferred;
    struct story_told told;
};

static void run_telling(struct deferred *deferred)
{
    struct telling *telling = container_of(deferred, struct telling, deferred);
    story_append(&telling->told);
    free(telling);
}

static bool has_window(void)
{
    const struct shadow *shadow;
    TAILQ_FOREACH (shadow, shadow_all(), siblings)
        if (shadow->kind == SHADOW_MW)
            return true;
    return false;
}

/* Queue pairs without an error leave room for those with one. */
static void tell(struct story_qp *story, const struct shadow *qp)
{
    unsigned most = story->state == IBV_QPS_ERR ? 2 * STORIES_MOST : STORIES_MOST;
    struct telling *telling = written < most ? calloc(1, sizeof *telling) : NULL;
    if (!telling)
        return;
    regions.others |= has_window();
    const struct wqe_queue *receives = qp->qp.srq ? &qp->qp.srq->srq.receives : &qp->qp.receives;
    written++;
    story->send_posted = qp->qp.sends.count;
    story->recv_posted = receives->count;
    telling->deferred.run = run_telling;
    telling->told.qp = *story;
    telling->told.regions = regions;
    if (story->events)
        telling->told.events = *story->events;
    deferred_add(&telling->deferred);
}

static void stamp(struct shadow *owner, struct wqe *wqe)
{
    (void)owner;
    wqe->when = now();
}

static void note_completion(struct shadow *qp, struct wqe *wqe, const struct calls_completion *completion)
{
    struct story_qp *story = likely(completion->status == IBV_WC_SUCCESS) ? NULL : find_story(qp);
    if (!story || wqe->wr_id != completion->wr_id)
        return;
    if (completion->status == IBV_WC_WR_FLUSH_ERR) {
        story->flushed_sends += !(wqe->flags & WQE_RECEIVE);
        story->flushed_receives += wqe->flags & WQE_RECEIVE ? 1 : 0;
        note_state(story, IBV_QPS_ERR);
    } else if (!story->failure.status) {
        note_failure(story, qp, wqe, completion);
        tell(story, qp);
    }
}

/* A queue pair without an error is of interest to the story of its peer. */
static void tell_last(struct shadow *qp)
{
    struct story_qp *story = find_story(qp);
    if (!story || !story->port || qp->process != getpid()) /* the end of a fork's child is not its parent's */
        return;
    story->over = now();
    tell(story, qp);
}

static void end_object(struct shadow *object, uint64_t began)
{
    (void)began;
    struct story_qp *story = find_story(object);
    if (object->kind == SHADOW_MR)
        end_region(object);
    regions.others |= object->kind == SHADOW_MW;
    if (!story)
        return;
    hash_remove(&story->by_serial);
    free(story->events);
    free(story);
}

static void end_qp(struct shadow *qp)
{
    tell_last(qp);
    end_object(qp, 0);
}

static void before_end(struct shadow *object)
{
    if (object->kind == SHADOW_QP)
        tell_last(object);
}

static void end_all(const struct ibv_context *context)
{
    struct shadow *shadow;
    TAILQ_FOREACH (shadow, (struct shadow_list *)shadow_all(), siblings)
        if (shadow->kind == SHADOW_QP && (!context || shadow->context == context))
            tell_last(shadow);
}

static const struct hooks hooks = {.posted = stamp,
                                   .completed = note_completion,
                                   .modified = note_change,
                                   .destroying = before_end,
                                   .destroyed = end_object,
                                   .memory = {.registered = add_region, .queued = begin_qp},
                                   .event = note_event,
                                   .unfollowed = end_qp,
                                   .ended = end_all};

void story_begin(void)
{
    const char *file = setting_environment(SETTING_STORY);
    if (file && *file)
        hooks_follow(&hooks);
}
