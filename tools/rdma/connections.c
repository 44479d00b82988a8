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
    {"route resolved", "ROUTE_RESOLVED"},
    {"listen", "LISTEN"},
    {"disconnect", "DISCONNECT"},
    {"DREQ sent", "DISCONNECT"},
    {"DREQ rcvd", "DISCONNECT"},
    {"timewait", "DISCONNECT"},
};

static const char *text_of(const json_t *connection, const char *key)
{
    const char *text = json_string_value(json_object_get(connection, key));
    return text ? text : "";
}

static const char *state_of(const json_t *connection)
{
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (!strcmp(states[i].ours, text_of(connection, "state")))
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

bool connection_is_of(const json_t *connection, const char *device)
{
    const char *own = json_string_value(json_object_get(connection, "device"));
    return own ? !strcmp(own, device) : !strcmp(text_of(connection, "state"), "listen");
}

void connection_describe(json_t *row, const json_t *connection, const json_t *report)
{
    const char *space = text_of(connection, "space"), *type = type_of(space);
    json_t *qp = json_object_get(connection, "qp");
    json_object_set(row, "cm-idn", json_object_get(connection, "id"));
    if (qp)
        json_object_set(row, "lqpn", qp);
    if (qp && type)
        json_object_set_new(row, "qp-type", json_string(type));
    json_object_set_new(row, "state", json_string(state_of(connection)));
    json_object_set_new(row, "ps", json_string(strcmp(space, "IPOIB") ? space : "IPoIB"));
    json_object_set(row, "pid", json_object_get(report, "pid"));
    json_object_set(row, "comm", json_object_get(report, "program"));
    add_place(row, "src-addr", text_of(connection, "local"));
    add_place(row, "dst-addr", text_of(connection, "peer"));
}
