#include "rdma/answers.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "config/device_identity.h"
#include "config/link_layer.h"
#include "events/lines.h"
#include "ipc/admin_port.h"
#include "ipc/node.h"
#include "rdma/connections.h"
#include "report/reports.h"

/* A kind of objects: its name for iproute2, the list of a report, and the keys, ours behind theirs. */
struct kind {
    const char *name, *list;
    struct {
        const char *theirs, *ours;
    } keys[6];
};

static const struct kind kinds[] = {
    {"pd", "pds", {{"pdn", "handle"}, {"users", "users"}}},
    {"cq", "cqs", {{"cqn", "handle"}, {"cqe", "size"}, {"users", "users"}}},
    {"qp", "qps", {{"lqpn", "number"}, {"rqpn", "peer_qp"}, {"type", "type"}, {"state", "state"}, {"pdn", "pd"}}},
    {"cm_id", "connections", {{NULL}}}, /* connections.h has its keys */
    {"mr", "mrs", {{"rkey", "key"}, {"lkey", "key"}, {"iova", "address"}, {"mrlen", "length"}, {"pdn", "pd"}}},
    {"srq", "srqs", {{"srqn", "handle"}}},
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

bool answers_know(const char *device)
{
    unsigned count;
    const struct device *devices = config_devices(&count);
    for (unsigned i = 0; i < count; i++)
        if (!strcmp(devices[i].name, device))
            return true;
    return false;
}

static json_t *row_begin(const struct device *device, bool port)
{
    json_t *row = json_pack("{s:i, s:s}", "ifindex", (int)device->index, "ifname", device->name);
    if (port)
        json_object_set_new(row, "port", json_integer(1));
    return row;
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
    json_object_set_new(row, "state", json_string(down ? "DOWN" : "ACTIVE"));
    json_object_set_new(row, "physical_state", json_string(down ? "DISABLED" : "LINK_UP"));
    if (link_layer_is_infiniband(device)) /* its interface would be one of IPoIB */
        return row;
    json_object_set_new(row, "netdev", json_string(interface));
    json_object_set_new(row, "netdev_ifindex", json_integer(if_nametoindex(interface)));
    return row;
}

static json_t *device_row(const struct device *device)
{
    const uint8_t *guid = device->guid;
    char text[20];
    snprintf(text, sizeof text, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", guid[0], guid[1], guid[2], guid[3], guid[4],
             guid[5], guid[6], guid[7]);
    json_t *row = row_begin(device, false);
    json_object_set_new(row, "node_type", json_string("ca"));
    json_object_set_new(row, "fw", json_string(IDENTITY_FIRMWARE));
    json_object_set_new(row, "node_guid", json_string(text));
    json_object_set_new(row, "sys_image_guid", json_string(text));
    return row;
}

static bool is_connections(const char *list)
{
    return !strcmp(list, "connections");
}

static bool is_of(const json_t *object, const char *list, const struct device *device)
{
    if (is_connections(list))
        return connection_is_of(object, device->name);
    const char *name = json_string_value(json_object_get(object, "device"));
    return name && !strcmp(name, device->name);
}

static json_int_t count_objects(const json_t *reports, const char *list, const struct device *device)
{
    size_t i, j;
    json_t *report, *object;
    json_int_t count = 0;
    json_array_foreach(reports, i, report) json_array_foreach(json_object_get(report, list), j, object) count +=
        is_of(object, list, device);
    return count;
}

static json_t *summary_row(const struct device *device, const json_t *reports)
{
    json_t *row = row_begin(device, false);
    for (int i = 0; i < KINDS; i++)
        json_object_set_new(row, kinds[i].name, json_integer(count_objects(reports, kinds[i].list, device)));
    return row;
}

static bool is_of_port(const struct kind *kind)
{
    return !strcmp(kind->name, "qp") || is_connections(kind->list);
}

static json_t *object_row(const struct device *device, const struct kind *kind, const json_t *object,
                          const json_t *report)
{
    json_t *row = row_begin(device, is_of_port(kind));
    if (is_connections(kind->list)) {
        connection_describe(row, object, report);
        return row;
    }
    for (int i = 0; kind->keys[i].theirs; i++)
        json_object_set(row, kind->keys[i].theirs, json_object_get(object, kind->keys[i].ours));
    json_object_set(row, "pid", json_object_get(report, "pid"));
    json_object_set(row, "comm", json_object_get(report, "program"));
    return row;
}

static void add_objects(json_t *rows, const struct device *device, const struct kind *kind, const json_t *reports)
{
    size_t i, j;
    json_t *report, *object;
    json_array_foreach(reports, i, report)
        json_array_foreach(json_object_get(report, kind->list), j, object) if (is_of(object, kind->list, device))
            json_array_append_new(rows, object_row(device, kind, object, report));
}

/* A number, or the sum of an object's: packets by operation. */
static json_int_t total(const json_t *value)
{
    const char *name;
    json_t *one;
    json_int_t sum = json_integer_value(value);
    json_object_foreach((json_t *)value, name, one) sum += json_integer_value(one);
    return sum;
}

/* By iproute2's names of the kernel's rxe. */
static json_t *statistic_row(const struct device *device, const json_t *reports)
{
    size_t i, j;
    json_t *row = row_begin(device, true), *report, *traffic;
    for (unsigned k = 0; k < event_counters_count; k++) {
        json_int_t sum = 0;
        if (!*event_counters[k].rdma)
            continue;
        json_array_foreach(reports, i, report) json_array_foreach(json_object_get(report, "traffic"), j, traffic) sum +=
            is_of(traffic, "traffic", device) ? total(json_object_get(traffic, event_counters[k].key)) : 0;
        json_object_set_new(row, event_counters[k].rdma, json_integer(sum));
    }
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
        add_objects(rows, device, kind, reports);
    else
        json_array_append_new(rows, summary_row(device, reports));
}

static enum answer_style style_of(const char *object, const struct kind *kind)
{
    if (!strcmp(object, "link") || !strcmp(object, "statistic") || (kind && is_of_port(kind)))
        return ANSWER_LINK;
    return kind ? ANSWER_DEVICE : ANSWER_NUMBERED;
}

json_t *answers_make(const char *object, const char *kind_name, const char *device, enum answer_style *style, char *why,
                     size_t why_size)
{
    const struct kind *kind = find_kind(kind_name);
    unsigned count;
    const struct device *devices = config_devices(&count);
    char directory[NODE_DIRECTORY_MAX + 1];
    bool asks = !strcmp(object, "resource") || !strcmp(object, "statistic");
    snprintf(why, why_size, "The directory's name in $SOFTVERBS_DIR is too long.");
    json_t *reports = !asks                       ? json_array()
                      : node_directory(directory) ? reports_collect(directory, why, why_size)
                                                  : NULL;
    if (!reports)
        return NULL;
    json_t *rows = json_array();
    for (unsigned i = 0; i < count; i++)
        if (!device || !strcmp(device, devices[i].name))
            add_rows(rows, object, kind, &devices[i], reports);
    json_decref(reports);
    *style = style_of(object, kind);
    return rows;
}
