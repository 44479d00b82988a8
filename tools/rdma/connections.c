#include "rdma/connections.h"

#include <stdio.h>
#include <string.h>

/* The states of Linux's connection manager by ours: of an identifier (src/cm/identifier.c), and of the connection or
 * resolution that it has. */
static const struct {
    const char *ours, *theirs;
} states[] = {
    {"idle", "IDLE"},
    {"bound", "ADDR_BOUND"},
    {"address query", "ADDR_QUERY"},
    {"address resolved", "ADDR_RESOLVED"},
    {"route query", "ROUTE_QUERY"},
    {"route resolved", "ROUTE_RESOLVED"},
    {"listen", "LISTEN"},
    {"disconnect", "DISCONNECT"},
    {"DREQ sent", "DISCONNECT"},
    {"DREQ rcvd", "DISCONNECT"},
    {"timewait", "DISCONNECT"},
};

static const char *state_of(const struct facts_identifier *identifier)
{
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (!strcmp(states[i].ours, facts_text(identifier->state)))
            return states[i].theirs;
    return "CONNECT";
}

/* An identifier of the space IB has the type that the program chose, which the report does not have. */
static const char *type_of(const char *space)
{
    return !strcmp(space, "TCP") ? "RC" : strcmp(space, "IB") ? "UD" : NULL;
}

/* iproute2 has no brackets around an IPv6 address. */
static void add_place(json_t *row, const char *name, const char *place)
{
    char text[64];
    const char *end = strchr(place, ']');
    if (!*place)
        return;
    if (end)
        snprintf(text, sizeof text, "%.*s%s", (int)(end - place - 1), place + 1, end + 1);
    else
        snprintf(text, sizeof text, "%s", place);
    json_object_set_new(row, name, json_string(text));
}

bool connection_is_of(const struct facts_identifier *identifier, const char *device)
{
    const char *own = identifier->device;
    return own ? !strcmp(own, device) : !strcmp(facts_text(identifier->state), "listen");
}

void connection_describe(json_t *row, const struct facts_identifier *identifier, const struct facts_process *process)
{
    const char *space = facts_text(identifier->space), *type = type_of(space);
    const struct fact_number *qp = &identifier->qp;
    json_object_update_new(
        row, json_pack("{s:I, s:o*, s:s*, s:s, s:s, s:I, s:s}", "cm-idn", (json_int_t)identifier->id.value, "lqpn",
                       qp->known ? json_integer((json_int_t)qp->value) : NULL, "qp-type", qp->known ? type : NULL,
                       "state", state_of(identifier), "ps", strcmp(space, "IPOIB") ? space : "IPoIB", "pid",
                       (json_int_t)process->pid.value, "comm", facts_text(process->program)));
    add_place(row, "src-addr", facts_text(identifier->local));
    add_place(row, "dst-addr", facts_text(identifier->peer));
}
