#include "verbs/ask/qp_story_log.h"

#include <stdio.h>
#include <string.h>

#include "diag/diag.h"
#include "diag/log.h"
#include "events/lines.h"
#include "events/words.h"

enum { TEXT = 480, ONE = 200, TIME = 32 };

/* Writes milliseconds with a point in every locale: a program may have a locale with a comma. */
static const char *before(nanos now, nanos time, char text[TIME])
{
    unsigned long long tenths = nanos_since(time, now) / (NANOS_MILLISECOND / 10);
    snprintf(text, TIME, "%llu.%llu", tenths / 10, tenths % 10);
    return text;
}

static size_t add_field(char *text, size_t used, enum event_field field, uint64_t value)
{
    if (field == EVENT_FIELD_NONE || field == EVENT_FIELD_LEFT || used >= ONE)
        return used;
    return used +
           (size_t)snprintf(text + used, ONE - used, " %s %llu", event_field_word(field), (unsigned long long)value);
}

static void describe_record(const struct story_record *record, nanos now, char text[ONE])
{
    const struct event_line *line = &event_lines[record->event];
    char time[TIME];
    size_t used = (size_t)snprintf(text, ONE, "%s ms before %.40s", before(now, record->time, time), line->name);
    used = add_field(text, used, line->a, record->a);
    used = add_field(text, used, line->b, record->b);
    add_field(text, used, event_kept((enum event)record->event), record->more);
}

static void log_events(uint32_t number, const struct story *story, uint32_t at, nanos now)
{
    char text[TEXT] = "", one[ONE];
    for (unsigned back = STORY_RECORDS; back; back--) {
        const struct story_record *record = story_record(story, at, back);
        if (!record->time || record->event >= EVENT_KINDS)
            continue;
        describe_record(record, now, one);
        if (*text && strlen(text) + strlen(one) + 3 > TEXT) {
            log_write(LOG_INFO, "qp 0x%x: story: %s", number, text);
            *text = 0;
        }
        snprintf(text + strlen(text), TEXT - strlen(text), "%s%s", *text ? "; " : "", one);
    }
    if (*text)
        log_write(LOG_INFO, "qp 0x%x: story: %s", number, text);
}

static void log_memory(uint32_t number, const struct story_memory *memory)
{
    char has[WORDS_SIZE], wanted[WORDS_SIZE];
    log_write(LOG_INFO, "qp 0x%x: story: it needs %s of %u bytes at 0x%llx by key 0x%x", number,
              words_access(memory->access, wanted), memory->length, (unsigned long long)memory->address, memory->key);
    if (memory->known)
        log_write(LOG_INFO, "qp 0x%x: story: that key is of a region of %llu bytes at 0x%llx with %s", number,
                  (unsigned long long)memory->size, (unsigned long long)memory->base, words_access(memory->has, has));
    else
        log_write(LOG_INFO, "qp 0x%x: story: that key is of no region", number);
}

static void log_error(uint32_t number, const struct story_error *error)
{
    const char *name = reason_name(error->reason);
    char time[TIME];
    if (error->subject == STORY_SEND)
        log_write(LOG_INFO,
                  "qp 0x%x: story: %s of %u bytes, wr_id %llu, posted %s ms before, ended with %s by %s (reason %u)",
                  number, words_opcode(error->opcode), error->length, (unsigned long long)error->id,
                  before(error->time, error->posted, time), words_status(error->status), name, error->reason);
    else
        log_write(LOG_INFO, "qp 0x%x: story: %s of %u bytes, psn %u, was refused by %s (reason %u)", number,
                  error->subject == STORY_PACKET    ? "a request of the peer"
                  : error->subject == STORY_RECEIVE ? "a receive"
                                                    : "the queue pair itself",
                  error->length, error->psn, name, error->reason);
    if (error->memory.refused)
        log_memory(number, &error->memory);
}

void qp_story_log(uint32_t number, const struct story *story, uint32_t at, nanos now)
{
    if (!log_wanted(LOG_INFO))
        return;
    if (story->error.reason)
        log_error(number, &story->error);
    log_events(number, story, at, now);
    log_write(LOG_INFO, "qp 0x%x: story: \"softverbs why --qp 0x%x\" prints it from both ends", number, number);
}
