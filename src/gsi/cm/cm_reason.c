#include "gsi/cm/cm_reason.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "config/config.h"
#include "diag/log.h"
#include "gsi/cm/cm_address.h"
#include "gsi/cm/cm_refusal.h"
#include "process/port.h"
#include "wire/cm/cm.h"

/* The reason of an event whose status is not 0 is in the first row with its kind, and with its status or 0. */
static const struct row {
    enum cm_event_kind kind;
    int status; /* 0: any but 0 */
    enum reason reason;
} rows[] = {
    {CM_REJECTED, CM_REJECT_INVALID_SERVICE, REASON_CM_NOBODY_LISTENS},
    {CM_REJECTED, CM_REJECT_CONSUMER, REASON_CM_REJECTED},
    {CM_REJECTED, CM_REJECT_STALE, REASON_CM_STALE},
    {CM_REJECTED, 0, REASON_CM_REFUSED},
    {CM_UNREACHABLE, CM_SIDR_UNSUPPORTED, REASON_CM_NOBODY_LISTENS},
    {CM_UNREACHABLE, CM_SIDR_REJECTED, REASON_CM_REJECTED},
    {CM_UNREACHABLE, -ETIMEDOUT, REASON_CM_UNANSWERED},
    {CM_UNREACHABLE, 0, REASON_CM_REFUSED},
    {CM_ADDR_ERROR, -ENODEV, REASON_CM_NO_DEVICE},
    {CM_ADDR_ERROR, -ETIMEDOUT, REASON_CM_NO_NEIGHBOR},
    {CM_ADDR_ERROR, 0, REASON_CM_NO_ROUTE},
    {CM_DISCONNECTED, -ETIMEDOUT, REASON_CM_DREQ_UNANSWERED},
};

enum reason cm_reason(enum cm_event_kind kind, int status)
{
    for (const struct row *row = rows; status && row < rows + sizeof rows / sizeof *rows; row++)
        if (row->kind == kind && (!row->status || row->status == status))
            return row->reason == REASON_CM_NO_DEVICE && !config_has_interfaces() ? REASON_CM_NO_INTERFACE
                                                                                  : row->reason;
    return REASON_NONE;
}

enum { MORE = PORT_ICMP + 2 * WORDS_GID };

/* Adds the ICMP message that may have answered the request. */
static void add_answer(const struct process *process, const struct cm_event *event, char text[MORE])
{
    if (log_wanted(LOG_INFO))
        port_icmp(process, event->route.from.device, event->route.gid, text);
}

/* Adds the destination, and, if it is an address of this host with its bytes in the other order, that address. True:
 * that is a loopback address, which can't be an accident. */
static bool add_destination(const uint8_t gid[16], char text[MORE])
{
    char there[WORDS_GID], other[WORDS_GID];
    struct cm_address swapped = {.family = AF_INET};
    int used = snprintf(text, MORE, ", %s", cm_refusal_words(gid, there));
    memcpy(swapped.gid, gid, 12);
    for (int i = 0; i < 4; i++)
        swapped.gid[12 + i] = gid[15 - i];
    if (!cm_is_mapped(gid) || !cm_address_is_here(&swapped))
        return false;
    snprintf(text + used, MORE - (size_t)used,
             ": with its bytes in the other order (htonl) it is %s, an address of this host",
             cm_refusal_words(swapped.gid, other));
    return cm_is_loopback(&swapped);
}

void cm_reason_log(const struct process *process, const struct cm_event *event)
{
    char more[MORE] = "";
    bool mistake = false;
    enum reason reason = cm_reason(event->kind, event->status);
    if (!reason)
        return;
    if (event->kind == CM_UNREACHABLE)
        add_answer(process, event, more);
    if (event->kind == CM_ADDR_ERROR && log_wanted(LOG_WARN))
        mistake = add_destination(event->route.gid, more);
    mistake |= reason == REASON_CM_NO_INTERFACE;
    log_reason(mistake ? LOG_WARN : LOG_INFO, reason, "identifier %u, status %d%s", event->number, event->status, more);
}
