#include <fcntl.h>
#include <unistd.h>

#include "base/spare.h"
#include "diag/log.h"
#include "ipc/state.h"

enum { LETTERS_A_ROUND = 256 };

/* Messages of a sender that has left since are read as well. */
static struct record *record_of(struct node *node, const struct control_message *message)
{
    if (table_is(node->table, message->slot, message->generation))
        return record_get(node, message->slot, message->generation, message->pid);
    return record_orphan(node, message->slot, message->generation, message->pid);
}

static void on_attach(struct node *node, const struct control_message *message, int memory, int published)
{
    struct cma_proof proof = {.pid = message->uid == geteuid() ? message->pid : 0,
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

/* Checks the sender's credentials per message: the directory lets no other user in, yet a socket may be passed to
 * another process, and a sender that was let in may have changed its user. A doorbell carries no data, so it is
 * accepted from every sender. Requests of the tools are for the user alone. */
static bool is_welcome(const struct node *node, const struct control_message *message)
{
    bool welcome = message->kind == CONTROL_DOORBELL || message->uid == geteuid() ||
                   (node->is_open && message->kind != CONTROL_REPORT);
    if (!welcome)
        log_reason(LOG_WARN, REASON_LETTER_USER, "user %u, process %d", (unsigned)message->uid, (int)message->pid);
    return welcome;
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

/* A message whose descriptor found no place in this process has been taken in vain. Its sender sends it again: then
 * there is a place, if no other thread is faster. */
static bool take_message(struct node *node, struct control_message *message, int *descriptor, int *published)
{
    if (node->cramped)
        spare_give_up(&node->spare);
    return control_take_both(node->socket, message, descriptor, published);
}

bool control_receive(struct node *node)
{
    struct control_message message;
    int descriptor, published;
    bool rang = false, attached = false;
    struct control_inbox *box = &node->entry->letters;
    atomic_store(&node->letters_seen, atomic_load(&box->sent)); /* before reading: late is once too often */
    control_inbox_begin(box);
    for (unsigned i = 0; i < LETTERS_A_ROUND; i++) {
        if (!take_message(node, &message, &descriptor, &published)) {
            control_inbox_end(box);
            break;
        }
        on_message(node, &message, &descriptor, published);
        attached |= message.kind == CONTROL_ATTACH;
        rang |= message.kind == CONTROL_DOORBELL || message.kind == CONTROL_REPORT;
        if (descriptor >= 0)
            close(descriptor);
        if (published >= 0)
            close(published);
        spare_keep(&node->spare, node->waker);
    }
    if (attached)
        records_check(node); /* a server of many short-lived clients would otherwise keep their rings */
    return rang;
}
