#include "verbs/ask/qp_story_messages.h"

#include <stdlib.h>
#include <string.h>

#include "transport/scatter.h"
#include "verbs/ask/qp_story.h"
#include "verbs/qp/qp_datapath.h"
#include "verbs/queue/receive_queue.h"
#include "wire/grh.h"
#include "wire/op.h"

static struct story_messages *make_messages(struct story_messages **messages)
{
    if (!*messages)
        *messages = calloc(1, sizeof **messages);
    return *messages;
}

static bool is_alike(const struct story_message *one, const struct story_message *other)
{
    const struct story_error *a = &one->error, *b = &other->error;
    return a->reason == b->reason && a->opcode == b->opcode && a->length == b->length && a->key == b->key &&
           one->peer == other->peer && !memcmp(one->gid, other->gid, 16);
}

/* Counts a message, and keeps the first one of those that are alike. */
static void add_message(struct story_messages *messages, const struct story_message *message)
{
    if (!messages)
        return;
    messages->all++;
    for (uint32_t i = 0; i < messages->count; i++)
        if (is_alike(&messages->list[i], message)) {
            messages->list[i].times++;
            return;
        }
    if (messages->count < STORY_MESSAGES)
        messages->list[messages->count++] = *message;
    else
        messages->others++;
}

void qp_story_message_failed(struct qp *qp, const struct send_wqe *work, enum ibv_wc_status status, enum reason reason,
                             const struct story_message *about)
{
    lock_assert_held(&qp->lock);
    struct story *story = traffic_story(qp_flow(qp));
    struct story_message message = *about;
    message.times = 1;
    message.error = (struct story_error){
        .time = qp_story_now(), .reason = (uint16_t)reason, .subject = STORY_SEND, .status = (uint8_t)status};
    qp_story_describe_send(qp, &message.error, work);
    if (story)
        add_message(make_messages(&story->failed), &message);
}

/* The sender's address, of IPv6 or of IPv4. */
static void read_sender(const struct packet *packet, uint8_t gid[16])
{
    uint8_t destination[16];
    if (packet->grh)
        grh_read(packet->grh, gid, destination);
}

/* A receive that is too short stays posted: it is the next one. */
static struct story_short next_receive(struct qp *qp, uint32_t bytes)
{
    struct story_short next = {.bytes = bytes};
    struct receive_queue *queue = qp_story_receives(qp);
    next.known = queue && receive_queue_next(queue, &next.id, &next.room);
    return next;
}

void qp_story_message_refused(struct qp *qp, const struct packet *packet, enum reason reason)
{
    lock_assert_held(&qp->lock);
    struct story *story = traffic_story(qp_flow(qp));
    struct story_message message = {.peer = packet->source, .times = 1, .state = (uint8_t)qp->state};
    if (!story)
        return;
    message.error = (struct story_error){.time = qp_story_now(), .reason = (uint16_t)reason, .subject = STORY_PACKET};
    message.qkey = reason == REASON_PACKET_QKEY ? packet->qkey : 0;
    read_sender(packet, message.gid);
    qp_story_describe_packet(qp, &message.error, packet);
    if (reason == REASON_RECEIVE_TOO_SHORT)
        message.too_short = next_receive(qp, packet->payload.length);
    if (reason < REASON_REMOTE_KEY_UNKNOWN || reason > REASON_REMOTE_PERMISSION)
        message.error.memory = (struct story_memory){0};
    add_message(make_messages(&story->refused), &message);
}

void qp_story_message_receive(struct qp *qp, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    lock_assert_held(&qp->lock);
    const struct story *story = qp_flow(qp)->story;
    struct story_messages *refused = story ? story->refused : NULL;
    struct story_message *last = refused && refused->count ? &refused->list[refused->count - 1] : NULL;
    if (last && last->error.reason == arrival->reason && !last->error.receive_status)
        qp_story_describe_receive(qp, &last->error, receive, arrival->status);
}

uint32_t qp_story_messages_count(const struct story *story)
{
    return story->failed ? story->failed->all : 0;
}

void qp_story_messages_forget(struct qp *qp)
{
    struct story *story = qp_flow(qp)->story;
    lock_assert_held(&qp->lock);
    if (!story)
        return;
    free(story->failed);
    free(story->refused);
    story->failed = story->refused = NULL;
}
