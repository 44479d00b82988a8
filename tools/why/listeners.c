#include "why/listeners.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LISTENERS = 3 };

/* The port of "10.0.0.1:7174". */
static struct fact_number port_of(const char *place)
{
    const char *colon = strrchr(facts_text(place), ':');
    return (struct fact_number){colon ? strtoul(colon + 1, NULL, 10) : 0, colon};
}

static struct fact_number swapped(struct fact_number port)
{
    return (struct fact_number){__builtin_bswap16((uint16_t)port.value), port.known};
}

static void take(struct listeners *listeners, const struct seen_process *process, const struct facts_identifier *each)
{
    explanation_name_process(process->own.program, process->own.pid.value, listeners->name);
    listeners->known = (struct known){.id = each,
                                      .name = listeners->name,
                                      .connection = {.peer_id = listeners->asker,
                                                     .port = port_of(each->local),
                                                     .asked = port_of(listeners->asker->peer)}};
    listeners->known.connection.swapped = swapped(listeners->known.connection.asked);
}

enum diagnosis listeners_next(struct listeners *listeners, enum diagnosis_group group)
{
    const struct seen *seen = listeners->seen;
    for (; seen && listeners->process < seen->count; listeners->process++, listeners->identifier = 0) {
        const struct seen_process *process = &seen->processes[listeners->process];
        while (listeners->identifier < process->identifier_count) {
            take(listeners, process, &process->identifiers[listeners->identifier++]);
            enum diagnosis diagnosis = diagnose(group, &listeners->known);
            if (diagnosis != DIAGNOSIS_NOTHING)
                return diagnosis;
        }
    }
    return DIAGNOSIS_NOTHING;
}

bool listeners_tell(struct explanation *explanation, const struct facts_identifier *asker, enum diagnosis_group group)
{
    struct listeners listeners = {.seen = explanation->processes, .asker = asker};
    enum diagnosis diagnosis;
    int count = 0;
    while (count < MOST_LISTENERS && (diagnosis = listeners_next(&listeners, group)) != DIAGNOSIS_NOTHING) {
        explanation_diagnose(explanation, 0, diagnosis, &listeners.known);
        count++;
    }
    return count;
}
