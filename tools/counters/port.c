#include "counters/port.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "events/lines.h"
#include "facts/read.h"

uint64_t port_total(const json_t *value)
{
    uint64_t total = (uint64_t)json_integer_value(value);
    const char *key;
    json_t *each;
    json_object_foreach ((json_t *)value, key, each)
        total += (uint64_t)json_integer_value(each);
    return total;
}

void port_list(const json_t *counts, bool zeros, char *text, size_t size)
{
    const char *key;
    json_t *value;
    size_t used = 0;
    *text = 0;
    json_object_foreach ((json_t *)counts, key, value) {
        uint64_t number = port_total(value);
        if ((number || zeros) && used < size && (json_is_integer(value) || json_is_object(value)))
            used += (size_t)snprintf(text + used, size - used, "%s%s %" PRIu64, used ? ", " : "", key, number);
    }
}

void port_add(json_t *to, const json_t *from)
{
    const char *key;
    json_t *each;
    json_object_foreach ((json_t *)from, key, each) {
        json_t *there = json_object_get(to, key);
        if (json_is_integer(each))
            json_object_set_new(to, key, json_integer(json_integer_value(there) + json_integer_value(each)));
        else if (json_is_object(each)) {
            if (!json_is_object(there))
                json_object_set_new(to, key, there = json_object());
            port_add(there, each);
        }
    }
}

const char *port_device(const json_t *traffic)
{
    return facts_text(
        json_string_value(facts_member(&facts_of_traffic, traffic, offsetof(struct facts_traffic, device))));
}

json_t *port_sum(const json_t *reports, const char *device)
{
    json_t *total = json_object(), *traffic;
    size_t i, j;
    for (i = 0; i < json_array_size(reports); i++) {
        struct facts_process process;
        facts_read(&facts_of_process, json_array_get(reports, i), &process);
        json_array_foreach (facts_json(&process.traffic), j, traffic)
            if (!strcmp(port_device(traffic), device))
                port_add(total, traffic);
    }
    return total;
}

/* The files of `counters`: errors of cables, which are 0 as this port has no cable, and the traffic. `divisor` is the
 * unit, as the kernel counts data by four bytes. */
static const struct standard {
    const char *name, *key;
    unsigned divisor;
} standard[] = {
    {"VL15_dropped"},
    {"excessive_buffer_overrun_errors"},
    {"link_downed"},
    {"link_error_recovery"},
    {"local_link_integrity_errors"},
    {"port_rcv_constraint_errors"},
    {"port_rcv_data", "bytes_received", 4},
    {"port_rcv_errors"},
    {"port_rcv_packets", "received", 1},
    {"port_rcv_remote_physical_errors"},
    {"port_rcv_switch_relay_errors"},
    {"port_xmit_constraint_errors"},
    {"port_xmit_data", "bytes_sent", 4},
    {"port_xmit_discards"},
    {"port_xmit_packets", "sent", 1},
    {"port_xmit_wait"},
    {"symbol_error"},
};

void port_describe(const json_t *traffic, port_visit *visit, void *context)
{
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++) {
        const struct standard *each = &standard[i];
        uint64_t value = each->key ? port_total(json_object_get(traffic, each->key)) / each->divisor : 0;
        visit(context, false, each->name, value);
    }
    for (unsigned at = 0; at < event_counters_count; at++)
        if (*event_counters[at].rdma && event_counter_begins(at))
            visit(context, true, event_counters[at].rdma, port_total(json_object_get(traffic, event_counters[at].key)));
}
