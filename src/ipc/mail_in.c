#include <fcntl.h>
#include <unistd.h>

#include "diag/log.h"
#include "ipc/state.h"

enum { LETTERS_A_ROUND = 256 };

/* A sender that has left since is heard out as well. */
static struct record *record_of(struct node *node, const struct mail *mail)
{
    if (table_is(node->table, mail->slot, mail->generation))
        return record_get(node, mail->slot, mail->generation, mail->pid);
    return record_orphan(node, mail->slot, mail->generation, mail->pid);
}

static void on_attach(struct node *node, const struct mail *mail, int memory, int published)
{
    struct probe probe = {.pid = mail->pid, .address = mail->probe_address, .value = mail->probe_value};
    if (mail->slot == node->slot || mail->to_generation != node->generation)
        return;
    node->cramped = memory < 0;
    if (node->cramped)
        return;
    lock_take(&node->lock);
    struct record *record = record_of(node, mail);
    bool attached = record && !shm_attached(record->peer.link, memory, &probe);
    if (attached && !record_hear(record))
        shm_detach(record->peer.link);
    else if (attached && node->published.file)
        shm_learn(record->peer.link, published);
    lock_release(&node->lock);
}

static void on_leave(struct node *node, const struct mail *mail)
{
    lock_take(&node->lock);
    struct record *record = node->by_slot[mail->slot];
    if (record && mail->slot != node->slot && record->generation == mail->generation)
        record_depart(record);
    lock_release(&node->lock);
}

static void on_report(struct node *node, int *descriptor)
{
    if (*descriptor < 0 || node->report_count == REPORTS_MAX)
        return;
    node->reports[node->report_count++] = *descriptor;
    *descriptor = -1;
}

/* The directory lets nobody else in, but a socket may be passed on, and who was let in may have become another user. A
 * doorbell is believed from anybody: it says nothing. */
static bool is_ours(const struct mail *mail)
{
    bool ours = mail->kind == MAIL_DOORBELL || mail->uid == geteuid();
    if (!ours)
        log_reason(LOG_WARN, REASON_LETTER_USER, "user %u, process %d", (unsigned)mail->uid, (int)mail->pid);
    return ours;
}

static void on_letter(struct node *node, const struct mail *mail, int *descriptor, int published)
{
    if (mail->slot >= TABLE_SLOTS || !is_ours(mail))
        return;
    switch (mail->kind) {
    case MAIL_ATTACH:
        on_attach(node, mail, *descriptor, published);
        break;
    case MAIL_LEAVE:
        on_leave(node, mail);
        break;
    case MAIL_REPORT:
        on_report(node, descriptor);
        break;
    }
}

void mail_keep_spare(struct node *node)
{
    if (node->spare < 0)
        node->spare = fcntl(node->waker, F_DUPFD_CLOEXEC, 0);
}

/* A letter whose descriptor found no place in this process has been taken in vain. Its sender sends it again: then
 * there is a place, if no other thread is faster. */
static bool take_letter(struct node *node, struct mail *mail, int *descriptor, int *published)
{
    if (node->cramped && node->spare >= 0) {
        close(node->spare);
        node->spare = -1;
    }
    return mail_take_both(node->socket, mail, descriptor, published);
}

bool mail_receive(struct node *node)
{
    struct mail mail;
    int descriptor, published;
    bool rang = false, attached = false;
    struct letterbox *box = &node->entry->letters;
    atomic_store(&node->letters_seen, atomic_load(&box->sent)); /* before reading: late is once too often */
    letterbox_begin(box);
    for (unsigned i = 0; i < LETTERS_A_ROUND; i++) {
        if (!take_letter(node, &mail, &descriptor, &published)) {
            letterbox_end(box);
            break;
        }
        on_letter(node, &mail, &descriptor, published);
        attached |= mail.kind == MAIL_ATTACH;
        rang |= mail.kind == MAIL_DOORBELL || mail.kind == MAIL_REPORT;
        if (descriptor >= 0)
            close(descriptor);
        if (published >= 0)
            close(published);
        mail_keep_spare(node);
    }
    if (attached)
        records_check(node); /* a server of many short-lived clients would otherwise keep their rings */
    return rang;
}
