#include "rdma/answers.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/device_identity.h"
#include "config/link_layer.h"
#include "counters/port.h"
#include "events/lines.h"
#include "facts/read.h"
#include "ipc/node.h"
#include "ipc/place/admin_port.h"
#include "rdma/connections.h"
#include "report/reports.h"

/* A kind of objects: its name for iproute2, its list among the facts of a process, and its keys, each with the offset
 * of our fact. */
struct kind {
    const char *name;
    const struct facts_kind *facts;
    size_t list;
    struct {
        const char *theirs;
        size_t ours;
    } keys[6];
};

#define LIST(kind, name) &facts_of_##kind, offsetof(struct facts_process, name)
#define KEY(kind, theirs, name)                                                                                        \
    {                                                                                                                  \
        theirs, offsetof(struct facts_##kind, name)                                                                    \
    }

static const struct kind kinds[] = {
    {"pd", LIST(pd, pds), {KEY(pd, "pdn", handle), KEY(pd, "users", users)}},
    {"cq", LIST(cq, cqs), {KEY(cq, "cqn", handle), KEY(cq, "cqe", size), KEY(cq, "users", users)}},
    {"qp",
     LIST(qp, qps),
     {KEY(qp, "lqpn", number), KEY(qp, "rqpn", peer_qp), KEY(qp, "type", type), KEY(qp, "state", state),
      KEY(qp, "pdn", pd)}},
    {"cm_id", LIST(identifier, connections), {{NULL, 0}}}, /* connections.h has its keys */
    {"mr",
     LIST(mr, mrs),
     {KEY(mr, "rkey", key), KEY(mr, "lkey", key), KEY(mr, "iova", address), KEY(mr, "mrlen", length),
      KEY(mr, "pdn", pd)}},
    {"srq", LIST(srq, srqs), {KEY(srq, "srqn", handle)}},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct kind *find_kind(const char *name)
{
    for (int i = 0; name && i < KINDS; i++)
        if (!strcmp(name, kinds[i].name))
            return &kinds[i];
    return NULL;
}

bool answers_have(const char *kind)
{
    return find_kind(kind);
}

static json_t *row_begin(const struct device *device, bool port)
{
    return json_pack("{s:i, s:s, s:o*}", "ifindex", (int)device->index, "ifname", device->name, "port",
                     port ? json_integer(1) : NULL);
}

static json_t *link_row(const struct device *device)
{
    struct ibv_port_attr attr = {0};
    const char *interface = *device->interface ? device->interface : "lo";
    char directory[NODE_DIRECTORY_MAX + 1];
    bool down = !device_now(device)->up || (node_directory(directory) && admin_port_is_down(directory, device->name));
    json_t *row = row_begin(device, true);
    link_layer_describe(device, &attr);
    if (link_layer_is_infiniband(device))
        json_object_update_new(row, json_pack("{s:s, s:i, s:i, s:i}", "subnet_prefix", "fe80:0000:0000:0000", "lid",
                                              attr.lid, "sm_lid", attr.sm_lid, "lmc", attr.lmc));
    json_object_update_new(row, json_pack("{s:s, s:s}", "state", down ? "DOWN" : "ACTIVE", "physical_state",
                                          down ? "DISABLED" : "LINK_UP"));
    if (config_has_interfaces())
        json_object_update_new(
            row, json_pack("{s:s, s:i}", "netdev", interface, "netdev_ifindex", (int)if_nametoindex(interface)));
    return row;
}

static json_t *device_row(const struct device *device)
{
    const uint8_t *guid = device->guid;
    char text[20];
    snprintf(text, sizeof text, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", guid[0], guid[1], guid[2], guid[3], guid[4],
             guid[5], guid[6], guid[7]);
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:s}", "ifindex", (int)device->index, "ifname", device->name,
                     "node_type", "ca", "fw", IDENTITY_FIRMWARE, "node_guid", text, "sys_image_guid", text);
}

static bool is_connections(const struct kind *kind)
{
    return kind->facts == &facts_of_identifier;
}

/* The facts of every other kind begin with the device. */
static bool is_of(const union facts_any *object, const struct kind *kind, const struct device *device)
{
    return is_connections(kind) ? connection_is_of(&object->identifier, device->name)
                                : !strcmp(facts_text(object->pd.device), device->name);
}

typedef json_t *row_maker(const struct device *, const struct kind *, const union facts_any *,
                          const struct facts_process *);

/* Adds a row for each object of the kind on the device; `rows` NULL: adds no row. Returns the number of objects. */
static json_int_t add_objects(json_t *rows, const struct device *device, const struct kind *kind, const json_t *reports,
                              row_maker *make)
{
    json_int_t count = 0;
    for (size_t i = 0; i < json_array_size(reports); i++) {
        struct facts_process process;
        union facts_any object;
        facts_read(&facts_of_process, json_array_get(reports, i), &process);
        const struct fact_inner *list = (const struct fact_inner *)((const char *)&process + kind->list);
        for (size_t k = 0; k < facts_count(list); k++) {
            if (!facts_read_at(kind->facts, list, k, &object) || !is_of(&object, kind, device))
                continue;
            count++;
            if (rows)
                json_array_append_new(rows, make(device, kind, &object, &process));
        }
    }
    return count;
}

static json_t *summary_row(const struct device *device, const json_t *reports)
{
    json_t *row = row_begin(device, false);
    for (int i = 0; i < KINDS; i++)
        json_object_set_new(row, kinds[i].name, json_integer(add_objects(NULL, device, &kinds[i], reports, NULL)));
    return row;
}

static bool is_of_port(const struct kind *kind)
{
    return kind->facts == &facts_of_qp || is_connections(kind);
}

/* Adds no key for a fact that is not known. */
static void add_key(json_t *row, const char *key, enum fact_form form, const void *value)
{
    const struct fact_number *number = value;
    const char *const *text = value;
    if (form == FACT_WORD)
        json_object_set_new(row, key, *text ? json_string(*text) : NULL);
    else if (number->known)
        json_object_set_new(row, key, json_integer((json_int_t)number->value));
}

static json_t *object_row(const struct device *device, const struct kind *kind, const union facts_any *object,
                          const struct facts_process *process)
{
    json_t *row = row_begin(device, is_of_port(kind));
    if (is_connections(kind)) {
        connection_describe(row, &object->identifier, process);
        return row;
    }
    for (int i = 0; kind->keys[i].theirs; i++)
        add_key(row, kind->keys[i].theirs, facts_at(kind->facts, kind->keys[i].ours)->form,
                (const char *)object + kind->keys[i].ours);
    json_object_update_new(
        row, json_pack("{s:I, s:s}", "pid", (json_int_t)process->pid.value, "comm", facts_text(process->program)));
    return row;
}

/* A row with the device's counts, under the names that iproute2 shows of the kernel's rxe. */
static json_t *statistic_row(const struct device *device, const json_t *reports)
{
    json_t *row = row_begin(device, true), *traffic = port_sum(reports, device->name);
    for (unsigned k = 0; k < event_counters_count; k++)
        if (*event_counters[k].rdma)
            json_object_set_new(row, event_counters[k].rdma,
                                json_integer((json_int_t)port_total(json_object_get(traffic, event_counters[k].key))));
    json_decref(traffic);
    return row;
}

static void add_rows(json_t *rows, const char *object, const struct kind *kind, const struct device *device,
                     const json_t *reports)
{
    if (!strcmp(object, "link"))
        json_array_append_new(rows, link_row(device));
    else if (!strcmp(object, "dev"))
        json_array_append_new(rows, device_row(device));
    else if (!strcmp(object, "statistic"))
        json_array_append_new(rows, statistic_row(device, reports));
    else if (kind)
        add_objects(rows, device, kind, reports, object_row);
    else
        json_array_append_new(rows, summary_row(device, reports));
}

static enum answer_style style_of(const char *object, const struct kind *kind)
{
    if (!strcmp(object, "link") || !strcmp(object, "statistic") || (kind && is_of_port(kind)))
        return ANSWER_LINK;
    return kind ? ANSWER_DEVICE : ANSWER_NUMBERED;
}

json_t *answers_make(const char *object, const char *kind_name, const char *name, enum answer_style *style, char *why,
                     size_t why_size)
{
    const struct kind *kind = find_kind(kind_name);
    char directory[NODE_DIRECTORY_MAX + 1];
    bool asks = !strcmp(object, "resource") || !strcmp(object, "statistic");
    snprintf(why, why_size, "The directory's name in $SOFTVERBS_DIR is too long.");
    json_t *reports = !asks                       ? json_array()
                      : node_directory(directory) ? reports_collect(directory, why, why_size)
                                                  : NULL;
    if (!reports)
        return NULL;
    json_t *rows = json_array();
    CONFIG_EACH (device)
        if (!name || !strcmp(name, device->name))
            add_rows(rows, object, kind, device, reports);
    json_decref(reports);
    *style = style_of(object, kind);
    return rows;
}
