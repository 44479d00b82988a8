#include "why/connection_story.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "facts/read.h"
#include "report/reports.h"
#include "why/connection_words.h"
#include "why/story.h"

/* The facts of an end of a connection: of its process, and its record of the identifier. */
struct partner {
    struct facts_connected end;
    struct facts_connection record;
};

static struct partner read_partner(const json_t *json)
{
    struct partner partner;
    facts_read(&facts_of_connected, json, &partner.end);
    facts_read(&facts_of_connection, facts_json(&partner.end.id), &partner.record);
    return partner;
}

/* -- what is known: lines that processes have left, and answers of live ones */

static bool is_wanted(const json_t *json, const struct connection_question *question)
{
    struct partner end = read_partner(json);
    return end.end.id.of && (question->all || end.record.number.value == question->number) &&
           (!question->pid || end.end.pid.value == (uint64_t)question->pid);
}

static json_t *ask(const char *directory, const char *what, uint64_t number)
{
    char request[48];
    snprintf(request, sizeof request, "events %s %" PRIu64, what, number);
    return directory ? reports_ask_all(directory, request, NULL) : json_array();
}

/* Returns whether both are stories of one identifier. */
static bool is_same(const struct partner *one, const struct partner *other)
{
    return one->end.pid.value == other->end.pid.value && one->record.number.value == other->record.number.value;
}

/* Returns whether a later story of the same identifier is in the list. */
static bool is_later_in(const json_t *list, size_t at)
{
    struct partner end = read_partner(json_array_get(list, at));
    for (size_t i = at + 1; i < json_array_size(list); i++) {
        struct partner later = read_partner(json_array_get(list, i));
        if (is_same(&end, &later))
            return true;
    }
    return false;
}

/* -- the other end. One of the communication IDs must match: an end that was rejected never learns its peer's. */

static bool are_partners(const struct partner *own, const json_t *json)
{
    struct partner other = read_partner(json);
    uint64_t here = own->record.communication_id.value, there = own->record.peer_communication_id.value;
    return !is_same(own, &other) && ((here && other.record.peer_communication_id.value == here) ||
                                     (there && other.record.communication_id.value == there));
}

static json_t *find_partner(const char *directory, const json_t *json, const json_t *lines)
{
    struct partner own = read_partner(json);
    uint64_t here = own.record.communication_id.value, there = own.record.peer_communication_id.value;
    json_t *answers = here ? ask(directory, "partner", here) : json_array(), *answer, *found = NULL;
    json_t *more = there ? ask(directory, "communication", there) : json_array();
    json_array_extend(answers, more);
    json_decref(more);
    size_t i;
    json_array_foreach(answers, i, answer) if (are_partners(&own, answer)) found = answer;
    for (i = json_array_size(lines); i-- && !found;)
        if (are_partners(&own, json_array_get(lines, i)))
            found = json_array_get(lines, i);
    json_incref(found);
    json_decref(answers);
    return found;
}

static json_t *join(const struct connection_question *question, json_t *own, const json_t *lines,
                    const json_t *processes)
{
    json_t *peer = find_partner(question->directory, own, lines), *ends = json_array();
    json_array_append(ends, own);
    if (peer)
        json_array_append(ends, peer);
    json_t *story = json_pack("{s:o, s:o, s:i}", "ends", ends, "sentences", connection_sentences(own, peer, processes),
                              "reason", (int)connection_reason(own));
    json_decref(peer);
    return story;
}

/* The answers of live processes; without an answer the lines that processes have left. */
static json_t *find_all(const struct connection_question *question, const json_t *lines)
{
    size_t i;
    json_t *end, *found = json_array();
    if (!question->all && !question->last && !question->from) {
        json_t *answers = ask(question->directory, "id", question->number);
        json_array_foreach(answers, i, end) if (is_wanted(end, question)) json_array_append(found, end);
        json_decref(answers);
    }
    if (!json_array_size(found))
        json_array_foreach((json_t *)lines, i, end) if (is_wanted(end, question) && !is_later_in(lines, i))
            json_array_append(found, end);
    return found;
}

json_t *connection_story_collect(const struct connection_question *question)
{
    size_t i;
    char why[256];
    json_t *end, *stories = json_array(), *lines = story_lines(question->directory, question->from);
    if (!lines)
        return NULL;
    json_t *found = find_all(question, lines);
    json_t *processes =
        question->directory && json_array_size(found) ? reports_collect(question->directory, why, sizeof why) : NULL;
    json_array_foreach(found, i, end) json_array_append_new(stories, join(question, end, lines, processes));
    json_decref(processes);
    json_decref(found);
    json_decref(lines);
    return stories;
}
