#include "facts/seen.h"

#include <math.h>
#include <stdlib.h>

#include "counters/port.h"
#include "events/lines.h"

/* The objects of a list, which the caller frees. */
static void *read_list(const struct facts_kind *kind, const struct fact_inner *list, size_t *count)
{
    size_t all = facts_count(list);
    char *objects = all ? malloc(all * kind->size) : NULL;
    *count = 0;
    for (size_t i = 0; objects && i < all; i++)
        *count += facts_read_at(kind, list, i, objects + *count * kind->size);
    return objects;
}

static bool read_process(struct seen_process *process, const json_t *report)
{
    if (!facts_read(&facts_of_process, report, &process->own))
        return false;
    process->qps = read_list(&facts_of_qp, &process->own.qps, &process->qp_count);
    process->cqs = read_list(&facts_of_cq, &process->own.cqs, &process->cq_count);
    process->srqs = read_list(&facts_of_srq, &process->own.srqs, &process->srq_count);
    process->identifiers = read_list(&facts_of_identifier, &process->own.connections, &process->identifier_count);
    return true;
}

struct seen seen_begin(const json_t *reports)
{
    struct seen seen = {.processes = calloc(json_array_size(reports) + 1, sizeof *seen.processes)};
    for (size_t i = 0; seen.processes && i < json_array_size(reports); i++)
        seen.count += read_process(&seen.processes[seen.count], json_array_get(reports, i));
    return seen;
}

void seen_end(struct seen *seen)
{
    for (size_t i = 0; i < seen->count; i++) {
        free(seen->processes[i].qps);
        free(seen->processes[i].cqs);
        free(seen->processes[i].srqs);
        free(seen->processes[i].identifiers);
    }
    free(seen->processes);
    *seen = (struct seen){0};
}

/* The object with this number, which its struct has at the offset `at`. */
static const void *find(const void *objects, size_t count, size_t size, size_t at, uint64_t number)
{
    for (const char *object = objects; count--; object += size) {
        const struct fact_number *of = (const struct fact_number *)(object + at);
        if (of->known && of->value == number)
            return object;
    }
    return NULL;
}

const struct seen_process *seen_find(const struct seen *seen, uint64_t pid)
{
    return find(seen->processes, seen->count, sizeof *seen->processes, offsetof(struct seen_process, own.pid), pid);
}

/* The finder of one kind, by the number or handle in its struct. */
#define FINDER(kind, list, number_at)                                                                                  \
    const struct facts_##kind *seen_##kind(const struct seen_process *process, uint64_t number)                        \
    {                                                                                                                  \
        return process ? find(process->list, process->kind##_count, sizeof(struct facts_##kind),                       \
                              offsetof(struct facts_##kind, number_at), number)                                        \
                       : NULL;                                                                                         \
    }
FINDER(qp, qps, number)
FINDER(cq, cqs, handle)
FINDER(srq, srqs, handle)
FINDER(identifier, identifiers, id)

/* The key of a sum. */
static const char *key_of_sum(unsigned sum)
{
    unsigned at = 0;
    while (at + 1 < event_counters_count && (event_counters[at].form != COUNTER_SUM || event_counters[at].index != sum))
        at++;
    return event_counters[at].key;
}

/* NULL: it is not counted there. */
static const json_t *find_count(const json_t *traffic, unsigned counter)
{
    const char *key = counter < EVENT_KINDS ? event_lines[counter].key : key_of_sum(counter - EVENT_KINDS);
    return json_object_get(traffic, key);
}

uint64_t seen_count(const struct fact_inner *traffic, unsigned counter)
{
    return port_total(find_count(facts_json(traffic), counter));
}

double seen_counted_in(const json_t *traffic, unsigned counter)
{
    const json_t *count = find_count(traffic, counter);
    return count ? (double)port_total(count) : NAN;
}

double seen_counted(const struct seen_process *process, unsigned counter)
{
    const json_t *devices = process ? facts_json(&process->own.traffic) : NULL, *strays;
    if (!devices)
        return NAN;
    strays = facts_json(&process->own.strays);
    double sum = strays ? seen_counted_in(strays, counter) : 0;
    for (size_t i = 0; i < json_array_size(devices); i++)
        sum += seen_counted_in(json_array_get(devices, i), counter);
    return sum;
}

uint64_t seen_main_reason(const struct fact_inner *traffic, enum event event, bool (*counts)(unsigned reason),
                          unsigned *reason)
{
    uint64_t most = 0;
    const char *name;
    json_t *count;
    json_object_foreach(json_object_get(facts_json(traffic), event_lines[event].key), name, count)
    {
        uint64_t times = port_total(count);
        if (times > most && counts((unsigned)strtoul(name, NULL, 10))) {
            most = times;
            *reason = (unsigned)strtoul(name, NULL, 10);
        }
    }
    return most;
}

uint64_t seen_part(const struct fact_inner *traffic, enum event event)
{
    const json_t *parts = json_object_get(facts_json(traffic), event_lines[event].key);
    return port_total(json_object_get(parts, event_lines[event].part));
}
