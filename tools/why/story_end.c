#include "why/story_end.h"

#include <stdio.h>
#include <string.h>

#include "facts/record.h"

static bool read_error(struct story_end *room, const json_t *error)
{
    bool read = facts_read(&facts_of_error, error, &room->error);
    facts_read(&facts_of_receive, facts_json(&room->error.receive), &room->receive);
    facts_read(&facts_of_refused, facts_json(&room->error.memory), &room->memory);
    return read;
}

const struct story_end *story_end_read(struct story_end *room, const json_t *json)
{
    memset(room, 0, sizeof *room);
    if (!facts_read(&facts_of_story, json, &room->story))
        return NULL;
    facts_read(&facts_of_qp, json, &room->qp);
    room->qp.number = room->story.qp;
    room->qp.port_down = room->story.port_down;
    snprintf(room->name, sizeof room->name, "%.40s (%d)", facts_text(room->story.program), (int)room->story.pid.value);
    read_error(room, facts_json(&room->story.error));
    facts_read(&facts_of_short, facts_json(&room->story.too_short), &room->too_short);
    return room;
}

const struct story_end *story_end_with(struct story_end *room, const struct story_end *end, const json_t *error)
{
    *room = *end;
    memset(&room->error, 0, sizeof room->error);
    memset(&room->receive, 0, sizeof room->receive);
    memset(&room->memory, 0, sizeof room->memory);
    memset(&room->too_short, 0, sizeof room->too_short);
    bool read = read_error(room, error);
    facts_read(&facts_of_short, facts_json(&room->error.too_short), &room->too_short);
    return read ? room : NULL;
}

unsigned story_end_reason(const struct story_end *end)
{
    return end ? (unsigned)end->error.reason.value : 0;
}

const json_t *story_end_events(const struct story_end *end)
{
    return end ? facts_json(&end->story.events) : NULL;
}

const json_t *story_end_event(const struct story_end *end, enum event event)
{
    return record_last(story_end_events(end), event);
}

bool story_end_is_in(const struct story_end *end, const char *state)
{
    return !strcmp(facts_text(end->story.state), state);
}

uint64_t story_end_count(const struct story_end *end, enum event event)
{
    return end ? seen_count(&end->story.counts, event) : 0;
}
