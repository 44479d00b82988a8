#include "why/connection_story.h"

#include <stdio.h>
#include <string.h>

#include "report/reports.h"
#include "why/connection_words.h"
#include "why/story.h"

static json_int_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const json_t *id_of(const json_t *end)
{
    return json_object_get(end, "id");
}

/* -- what is known: lines that processes have left, and answers of live ones */

static bool is_wanted(const json_t *end, const struct connection_question *question)
{
    return json_is_object(id_of(end)) &&
           (question->all || (unsigned long)number_of(id_of(end), "number") == question->number) &&
           (!question->pid || number_of(end, "pid") == question->pid);
}

static json_t *ask(const char *directory, const char *what, json_int_t number)
{
    char request[48];
    snprintf(request, sizeof request, "events %s %" JSON_INTEGER_FORMAT, what, number);
    return directory ? reports_ask_all(directory, request) : json_array();
}

/* Returns whether this is the story of one that is in the list already, where the later one stands. */
static bool is_same(const json_t *one, const json_t *other)
{
    return number_of(one, "pid") == number_of(other, "pid") &&
           number_of(id_of(one), "number") == number_of(id_of(other), "number");
}

static bool is_later_in(const json_t *list, size_t at)
{
    const json_t *end = json_array_get(list, at);
    for (size_t i = at + 1; i < json_array_size(list); i++)
        if (is_same(end, json_array_get(list, i)))
            return true;
    return false;
}

/* -- the other end: one that was rejected has not learned its peer's communication ID */

static bool are_partners(const json_t *own, const json_t *other)
{
    json_int_t here = number_of(id_of(own), "communication_id"), there = number_of(id_of(own), "peer_communication_id");
    return !is_same(own, other) && ((here && number_of(id_of(other), "peer_communication_id") == here) ||
                                    (there && number_of(id_of(other), "communication_id") == there));
}

static json_t *find_partner(const char *directory, const json_t *own, const json_t *lines)
{
    json_int_t here = number_of(id_of(own), "communication_id"), there = number_of(id_of(own), "peer_communication_id");
    json_t *answers = here ? ask(directory, "partner", here) : json_array(), *answer, *found = NULL;
    json_t *more = there ? ask(directory, "communication", there) : json_array();
    json_array_extend(answers, more);
    json_decref(more);
    size_t i;
    json_array_foreach(answers, i, answer) if (are_partners(own, answer)) found = answer;
    for (i = json_array_size(lines); i-- && !found;)
        if (are_partners(own, json_array_get(lines, i)))
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

/* Live ones come first. */
static json_t *find_all(const struct connection_question *question, const json_t *lines)
{
    size_t i;
    json_t *end, *found = json_array();
    if (!question->all && !question->last && !question->from) {
        json_t *answers = ask(question->directory, "id", (json_int_t)question->number);
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
