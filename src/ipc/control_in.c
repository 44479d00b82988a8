#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/spare.h"
#include "base/user.h"
#include "diag/log.h"
#include "ipc/state.h"

enum { MESSAGES_A_ROUND = 256 };

/* The ring of a sender that has left since is read as well. */
static struct record *record_of(struct node *node, const struct control_message *message)
{
    if (table_is(node->table, message->slot, message->generation))
        return record_get(node, message->slot, message->generation, message->pid);
    return record_orphan(node, message->slot, message->generation, message->pid);
}

static void on_attach(struct node *node, const struct control_message *message, int memory, int published)
{
    struct cma_proof proof = {.pid = user_owns_process(message->uid, message->pid) ? message->pid : 0,
                              .address = message->proof_address,
                              .value = message->proof_value};
    if (message->slot == node->slot || message->to_generation != node->generation)
        return;
    node->cramped = memory < 0;
    if (node->cramped)
        return;
    lock_take(&node->lock);
    struct record *record = record_of(node, message);
    if (record && record_may_hear(record) && !shm_attached(record->peer.link, memory, &proof)) {
        records_fence(node);
        record_hear(record);
        shm_learn(record->peer.link, node->published.file ? published : -1);
    }
    lock_release(&node->lock);
}

static void on_leave(struct node *node, const struct control_message *message)
{
    lock_take(&node->lock);
    struct record *record = node->by_slot[message->slot];
    if (record && message->slot != node->slot && record->generation == message->generation)
        record_depart(record);
    lock_release(&node->lock);
}

static void on_report(struct node *node, int *descriptor)
{
    if (*descriptor < 0 || node->requests.count == REPORTS_MAX)
        return;
    node->requests.descriptors[node->requests.count++] = *descriptor;
    *descriptor = -1;
}

/* A request shows keys and addresses and can change what the program does. Only the user may make it; if the program
 * has more rights than its user (set-uid, file capabilities), only root, which may trace it. */
static enum reason refuse_request(const struct control_message *message)
{
    if (getauxval(AT_SECURE))
        return message->uid ? REASON_LETTER_RIGHTS : REASON_NONE;
    return user_owns_process(message->uid, message->pid) ? REASON_NONE : REASON_LETTER_USER;
}

/* A directory that is not open lets no other user in, yet a socket may be passed to another process, and a sender that
 * was let in may have changed its user. Where one number shows many users, a process of another namespace can't be
 * proven to be ours, and the directory has to suffice. A doorbell carries no data, so every sender's is accepted. */
static enum reason refuse_message(const struct node *node, const struct control_message *message)
{
    if (message->kind == CONTROL_REPORT)
        return refuse_request(message);
    bool welcome = message->kind == CONTROL_DOORBELL || node->is_open || user_has_own_number(message->uid);
    return welcome ? REASON_NONE : REASON_LETTER_USER;
}

/* Checks the sender's credentials, for each message. */
static bool is_welcome(const struct node *node, const struct control_message *message)
{
    enum reason reason = refuse_message(node, message);
    if (reason)
        log_reason(LOG_WARN, reason, "user %u, process %d", (unsigned)message->uid, (int)message->pid);
    return !reason;
}

static void on_message(struct node *node, const struct control_message *message, int *descriptor, int published)
{
    if (message->slot >= TABLE_SLOTS || !is_welcome(node, message))
        return;
    switch (message->kind) {
    case CONTROL_ATTACH:
        on_attach(node, message, *descriptor, published);
        break;
    case CONTROL_LEAVE:
        on_leave(node, message);
        break;
    case CONTROL_REPORT:
        on_report(node, descriptor);
        break;
    }
}

/* Takes a message. If its descriptor found no place in this process, the message is lost, and its sender sends it
 * again: the spare descriptor's place is free then, unless another thread takes it. */
static bool take_message(struct node *node, struct control_message *message, int *descriptor, int *published)
{
    if (node->cramped)
        spare_give_up(&node->spare);
    return control_take(node->socket, message, descriptor, published);
}

bool control_receive(struct node *node)
{
    struct control_message message;
    int descriptor, published;
    bool rang = false, attached = false;
    struct control_inbox *box = &node->entry->inbox;
    atomic_store(&node->inbox_seen, atomic_load(&box->sent)); /* before reading, or one could be missed */
    control_inbox_begin(box);
    for (unsigned i = 0; i < MESSAGES_A_ROUND; i++) {
        if (!take_message(node, &message, &descriptor, &published)) {
            control_inbox_end(box);
            break;
        }
        on_message(node, &message, &descriptor, published);
        attached |= message.kind == CONTROL_ATTACH;
        rang |= message.kind == CONTROL_DOORBELL || message.kind == CONTROL_REPORT;
        descriptor_close(&descriptor);
        descriptor_close(&published);
        spare_keep(&node->spare, node->waker);
    }
    if (attached)
        records_check(node); /* a server of many short-lived clients would otherwise keep their rings */
    return rang;
}
