#include "gsi/cm/cm_reason.h"

#include <errno.h>

#include "config/config.h"
#include "diag/log.h"
#include "process/port.h"
#include "wire/cm/cm.h"

/* The first row of the kind with the status, or without one, counts. */
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
            return row->reason == REASON_CM_NO_DEVICE && config_is_infiniband() ? REASON_CM_ON_INFINIBAND : row->reason;
    return REASON_NONE;
}

/* The request that nothing answered may have been answered by ICMP. */
static const char *answer_to(const struct process *process, const struct cm_event *event, char text[PORT_ICMP])
{
    text[0] = 0;
    if (event->kind == CM_UNREACHABLE && log_wanted(LOG_INFO))
        port_icmp(process, event->route.from.device, event->route.gid, text);
    return text;
}

void cm_reason_log(const struct process *process, const struct cm_event *event)
{
    char answer[PORT_ICMP];
    enum reason reason = cm_reason(event->kind, event->status);
    if (reason)
        log_reason(reason == REASON_CM_ON_INFINIBAND ? LOG_WARN : LOG_INFO, reason, "identifier %u, status %d%s",
                   event->number, event->status, answer_to(process, event, answer));
}
