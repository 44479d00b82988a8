#include "gsi/probe.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "config/identity.h"
#include "gsi/gsi.h"
#include "process/port.h"
#include "process/process.h"
#include "runtime/clock.h"

/* Service IDs that begin with 0x10 belong to who has the OUI behind it: "ping". */
static const uint64_t service = (uint64_t)0x10 << 56 | (uint64_t)IDENTITY_VENDOR << 32 | 0x70696e67;

struct probe {
    struct gsi_asker asker;
    struct process *process;
    uint32_t cookie; /* so that nobody answers who was not asked */
    int fd;
};

static bool probe_take(struct gsi_asker *asker, const struct cm_message *reply, uint32_t length)
{
    struct probe *probe = (struct probe *)((char *)asker - offsetof(struct probe, asker));
    struct probe_answer answer = {
        .at = clock_now(), .number = (uint32_t)reply->transaction, .length = length, .status = reply->sidr_rep.status};
    struct cm_message question = probe_question(probe, answer.number);
    if (reply->transaction != question.transaction || reply->remote_id != question.local_id)
        return false;
    memcpy(answer.private_data, reply->private_data, sizeof answer.private_data);
    return write(probe->fd, &answer, sizeof answer) == sizeof answer || errno == EAGAIN;
}

static void listen_with(struct process *process, struct gsi_asker *asker)
{
    lock_take(&process->progress);
    process->gsi->asker = asker;
    lock_release(&process->progress);
}

static int probe_enter(struct probe *probe, const struct device *device)
{
    mutex_take(&probe->process->control);
    int error = port_open(probe->process, device);
    mutex_release(&probe->process->control);
    if (!error)
        error = node_claim_numbers(probe->process->node, &probe->asker.first);
    if (!error)
        listen_with(probe->process, &probe->asker);
    return error;
}

int probe_open(struct probe **to, const struct device *device, const struct process_parts *parts, int fd)
{
    struct probe *probe = calloc(1, sizeof *probe);
    if (!probe)
        return ENOMEM;
    probe->asker.take = probe_take;
    probe->fd = fd;
    probe->process = process_join(parts);
    int error = probe->process ? 0 : errno;
    if (!error && getrandom(&probe->cookie, sizeof probe->cookie, 0) != sizeof probe->cookie)
        error = EIO;
    if (!error)
        error = probe_enter(probe, device);
    if (!error)
        *to = probe;
    else
        probe_close(probe);
    return error;
}

void probe_close(struct probe *probe)
{
    if (probe->process) {
        listen_with(probe->process, NULL);
        if (probe->asker.first)
            node_return_numbers(probe->process->node, probe->asker.first);
        process_leave(probe->process);
    }
    free(probe);
}

struct cm_message probe_question(const struct probe *probe, uint32_t number)
{
    return (struct cm_message){.attribute = CM_SIDR_REQ,
                               .transaction = (uint64_t)probe->cookie << 32 | number,
                               .local_id = probe->asker.first + number % NODE_BLOCK,
                               .sidr_req = {.pkey = DEVICE_PKEY, .service = service}};
}
