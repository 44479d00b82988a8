#include "gsi/mad.h"

#include <errno.h>
#include <stdlib.h>

#include "base/container.h"
#include "gsi/cm/cm.h"
#include "gsi/gsi.h"

static enum endpoint_output receive_mad(struct endpoint *endpoint, const struct endpoint_arrival *arrival)
{
    struct process *process = container_of(endpoint, struct process, mad);
    if (arrival->forwarded || !arrival->peer)
        gsi_receive(process, &arrival->from, arrival->forwarded);
    else
        cm_receive(process, arrival->peer, arrival->from.packet);
    return ENDPOINT_NOTHING;
}

int mad_begin(struct process *process)
{
    static const struct endpoint_operations operations = {.receive = receive_mad};
    process->mad.operations = &operations;
    process_objects(process)->gsi = calloc(1, sizeof *process_objects(process)->gsi);
    return process_objects(process)->gsi ? 0 : ENOMEM;
}

void mad_end(struct process *process)
{
    free(process_objects(process)->gsi);
}
