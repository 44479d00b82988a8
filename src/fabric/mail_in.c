#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabric/state.h"

enum { LETTERS_A_ROUND = 256 };

/* A sender that has left since is heard out as well. */
static struct record *record_of(struct node *node, const struct mail *mail)
{
    if (table_is(node->table, mail->slot, mail->generation))
        return record_get(node, mail->slot, mail->generation, mail->pid);
    return record_orphan(node, mail->slot, mail->generation, mail->pid);
}

static void on_attach(struct node *node, const struct mail *mail, int memory)
{
    struct probe probe = {.pid = mail->pid, .address = mail->probe_address, .value = mail->probe_value};
    if (memory < 0 || mail->slot == node->slot || mail->to_generation != node->generation)
        return;
    lock_take(&node->lock);
    struct record *record = record_of(node, mail);
    if (record && !shm_attached(record->peer.link, memory, &probe) && !record_hear(record))
        shm_detach(record->peer.link);
    lock_release(&node->lock);
    records_check(node); /* a server of many short-lived clients would otherwise keep their rings */
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

static void on_letter(struct node *node, const struct mail *mail, int *descriptor)
{
    if (mail->slot >= TABLE_SLOTS)
        return;
    switch (mail->kind) {
    case MAIL_ATTACH:
        on_attach(node, mail, *descriptor);
        break;
    case MAIL_LEAVE:
        on_leave(node, mail);
        break;
    case MAIL_REPORT:
        on_report(node, descriptor);
        break;
    }
}

bool mail_receive(struct node *node)
{
    struct mail mail;
    int descriptor;
    bool rang = false;
    atomic_store(&node->letters_seen, atomic_load(&node->entry->letters)); /* before reading: late is once too often */
    for (unsigned i = 0; i < LETTERS_A_ROUND && mail_take(node->socket, &mail, &descriptor); i++) {
        on_letter(node, &mail, &descriptor);
        rang |= mail.kind == MAIL_DOORBELL || mail.kind == MAIL_REPORT;
        if (descriptor >= 0)
            close(descriptor);
    }
    return rang;
}

static struct epoll_event writable_once(struct record *record)
{
    return (struct epoll_event){.events = EPOLLOUT | EPOLLONESHOT, .data.ptr = record};
}

/* A connected datagram socket becomes writable when the other's queue has room again. Without one (no descriptors left)
 * the attach is tried again with the next letter that we get. */
static void watch(struct node *node, struct record *record)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct epoll_event event = writable_once(record);
    char name[MAIL_NAME_MAX];
    table_socket_name(node->directory, record->peer.slot, name);
    snprintf(to.sun_path, sizeof to.sun_path, "%s", name);
    record->writable = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (record->writable < 0)
        return;
    if (connect(record->writable, (struct sockaddr *)&to, sizeof to) ||
        epoll_ctl(node->epoll, EPOLL_CTL_ADD, record->writable, &event)) {
        close(record->writable);
        record->writable = -1;
    }
}

void mail_postponed(struct shm_host *host, void *owner)
{
    struct record *record = owner;
    struct node *node = record->node;
    lock_take(&node->postponing);
    if (record->writable < 0)
        watch(node, record);
    atomic_store(&node->postponed, true);
    lock_release(&node->postponing);
}

static void stop_watching(struct record *record)
{
    if (record->writable >= 0)
        close(record->writable);
    record->writable = -1;
}

/* True: it still has to wait. */
static bool retry(struct node *node, struct record *record)
{
    bool full = !record->peer.gone && shm_attach(record->peer.link) == EAGAIN;
    struct epoll_event event = writable_once(record);
    lock_take(&node->postponing);
    if (!full)
        stop_watching(record);
    else if (record->writable >= 0)
        epoll_ctl(node->epoll, EPOLL_CTL_MOD, record->writable, &event);
    lock_release(&node->postponing);
    return full;
}

void mail_retry(struct node *node)
{
    if (!atomic_exchange(&node->postponed, false))
        return;
    bool full = false;
    lock_take(&node->lock);
    for (struct record *record = node->records; record; record = record->next)
        if (record->peer.slot != node->slot)
            full |= retry(node, record);
    lock_release(&node->lock);
    if (full)
        atomic_store(&node->postponed, true);
}
