#include "gsi/gsi_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/container.h"
#include "config/device_identity.h"
#include "gsi/gsi.h"
#include "process/port.h"
#include "runtime/clock.h"

/* A service ID that begins with 0x10 belongs to the holder of the OUI that follows: "ping". */
static const uint64_t service = (uint64_t)0x10 << 56 | (uint64_t)IDENTITY_VENDOR << 32 | 0x70696e67;

struct gsi_client {
    struct gsi_asker asker;
    struct process *process;
    uint32_t cookie; /* a random number in each question, so that only a host that was asked can answer */
    int fd;
};

static bool gsi_client_take(struct gsi_asker *asker, const struct cm_message *reply, uint32_t length)
{
    struct gsi_client *client = container_of(asker, struct gsi_client, asker);
    struct gsi_client_reply answer = {
        .at = clock_now(), .number = (uint32_t)reply->transaction, .length = length, .status = reply->sidr_rep.status};
    struct cm_message question = gsi_client_question(client, answer.number);
    if (reply->transaction != question.transaction || reply->remote_id != question.local_id)
        return false;
    memcpy(answer.private_data, reply->private_data, sizeof answer.private_data);
    return write(client->fd, &answer, sizeof answer) == sizeof answer || errno == EAGAIN;
}

static void listen_with(struct process *process, struct gsi_asker *asker)
{
    lock_take(&process->progress);
    process_objects(process)->gsi->asker = asker;
    lock_release(&process->progress);
}

static int gsi_client_enter(struct gsi_client *client, const struct device *device)
{
    mutex_take(&client->process->control);
    int error = port_open(client->process, device);
    mutex_release(&client->process->control);
    if (!error)
        error = node_claim_numbers(client->process->node, NODE_NUMBERS, &client->asker.first);
    if (!error)
        listen_with(client->process, &client->asker);
    return error;
}

int gsi_client_open(struct gsi_client **to, const struct device *device, const struct process_parts *parts, int fd)
{
    struct gsi_client *client = calloc(1, sizeof *client);
    if (!client)
        return ENOMEM;
    client->asker.take = gsi_client_take;
    client->fd = fd;
    client->process = process_join(parts);
    int error = client->process ? 0 : errno;
    if (!error && getrandom(&client->cookie, sizeof client->cookie, 0) != sizeof client->cookie)
        error = EIO;
    if (!error)
        error = gsi_client_enter(client, device);
    if (!error)
        *to = client;
    else
        gsi_client_close(client);
    return error;
}

void gsi_client_close(struct gsi_client *client)
{
    if (client->process) {
        listen_with(client->process, NULL);
        if (client->asker.first)
            node_return_numbers(client->process->node, client->asker.first);
        process_leave(client->process);
    }
    free(client);
}

struct cm_message gsi_client_question(const struct gsi_client *client, uint32_t number)
{
    return (struct cm_message){.attribute = CM_SIDR_REQ,
                               .transaction = (uint64_t)client->cookie << 32 | number,
                               .local_id = client->asker.first + number % NODE_BLOCK,
                               .sidr_req = {.pkey = DEVICE_PKEY, .service = service}};
}
