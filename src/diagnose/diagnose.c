#include <string.h>

#include "diag/diag.h"
#include "diagnose/diagnose.h"

static const struct {
    enum diagnosis_group group;
    const char *conditions, *sentence;
} diagnoses[] = {
    {DIAGNOSE_NAMED, "", ""},
#define DIAGNOSIS(name, group, conditions, sentence) {DIAGNOSE_##group, conditions, sentence},
#include "diagnose/diagnose.def"
};

/* The members of struct known that sentences name: facts, and objects that have facts. */
static const struct fact members[] = {
#define MEMBER(name, form) MEMBER_AT(name, form, name)
#define MEMBER_AT(name, form, member)                                                                                  \
    {                                                                                                                  \
#name, FACT_##form, offsetof(struct known, member)                                                             \
    }
    MEMBER(process, TEXT),
    MEMBER(place, TEXT),
    MEMBER_AT(posting, TEXT, posting.own),
    MEMBER_AT(peer_posting, TEXT, posting.peer),
    MEMBER(hint, TEXT),
    MEMBER_AT(question, TEXT, asked.outcome),
    MEMBER(words, TEXT),
    MEMBER(name, TEXT),
    MEMBER(count, NUMBER),
    MEMBER(needed, NUMBER),
    MEMBER(reason, NUMBER),
    MEMBER_AT(port, NUMBER, connection.port),
    MEMBER_AT(asked, NUMBER, connection.asked),
    MEMBER_AT(swapped, NUMBER, connection.swapped),
    MEMBER_AT(naks_got, NUMBER, counts.naks_got),
    MEMBER_AT(naks_sent, NUMBER, counts.naks_sent),
    MEMBER_AT(timeouts, NUMBER, counts.timeouts)};

static const struct {
    const char *name;
    const struct facts_kind *kind;
    size_t at;
} objects[] = {
#define OBJECT(name, of) OBJECT_AT(name, of, name)
#define OBJECT_AT(name, of, member)                                                                                    \
    {                                                                                                                  \
#name, &facts_of_##of, offsetof(struct known, member)                                                          \
    }
    OBJECT(own, qp),
    OBJECT(peer, qp),
    OBJECT(cq, cq),
    OBJECT(srq, srq),
    OBJECT(peer_srq, srq),
    OBJECT(missing, missing),
    OBJECT(partner, process),
    OBJECT(id, identifier),
    OBJECT(end, story),
    OBJECT(error, error),
    OBJECT(receive, receive),
    OBJECT(memory, refused),
    OBJECT(too_short, short),
    OBJECT(message, message),
    OBJECT_AT(peer_id, identifier, connection.peer_id),
    OBJECT_AT(record, connection, connection.record)};

/* A part of a sentence. */
struct part {
    const char *text;
    size_t length;
};

struct writer {
    const struct known *known;
    char *text;
    size_t size, used;
};

/* Takes the part before this letter off `rest`, and the letter, too. False: `rest` has no such letter. */
static bool split(struct part *rest, char letter, struct part *before)
{
    const char *at = memchr(rest->text, letter, rest->length);
    if (!at)
        return false;
    *before = (struct part){rest->text, (size_t)(at - rest->text)};
    *rest = (struct part){at + 1, rest->length - before->length - 1};
    return true;
}

static bool is(struct part part, const char *name)
{
    return strlen(name) == part.length && !memcmp(name, part.text, part.length);
}

static void add(struct writer *writer, struct part part)
{
    size_t room = writer->size - writer->used - 1, length = part.length < room ? part.length : room;
    memcpy(writer->text + writer->used, part.text, length);
    writer->used += length;
}

static const struct fact *find_fact(const struct fact *facts, size_t count, struct part name)
{
    for (size_t i = 0; i < count; i++)
        if (is(name, facts[i].name))
            return &facts[i];
    return NULL;
}

/* Finds the line of the fact that a sentence names, and its value, which is NULL if the object is not known. */
static const struct fact *look_up(const struct known *known, struct part name, const void **value)
{
    struct part object;
    size_t i = 0;
    if (!split(&name, '.', &object)) {
        const struct fact *fact = find_fact(members, sizeof members / sizeof *members, name);
        *value = fact ? (const char *)known + fact->at : NULL;
        return fact;
    }
    while (i + 1 < sizeof objects / sizeof *objects && !is(object, objects[i].name))
        i++;
    const struct fact *fact = find_fact(objects[i].kind->facts, objects[i].kind->count, name);
    const char *of = *(const char *const *)((const char *)known + objects[i].at);
    *value = of && fact ? of + fact->at : NULL;
    return fact;
}

static bool is_text(const struct fact *fact)
{
    return fact->form == FACT_WORD || fact->form == FACT_TEXT;
}

static uint64_t number_of(const struct fact *fact, const void *value)
{
    if (!fact || !value || is_text(fact))
        return 0;
    return fact->form == FACT_FLAG ? ((const struct fact_flag *)value)->value
                                   : ((const struct fact_number *)value)->value;
}

static bool has_value(const struct fact *fact, const void *value)
{
    if (!fact || !value)
        return false;
    if (fact->form == FACT_FLAG)
        return ((const struct fact_flag *)value)->known;
    return is_text(fact) ? *(const char *const *)value && **(const char *const *)value
                         : ((const struct fact_number *)value)->known;
}

static const char *format_number(const struct fact *fact, const void *value, char text[32])
{
    bool hexadecimal = fact->form == FACT_QPN || fact->form == FACT_KEY || fact->form == FACT_ADDRESS;
    snprintf(text, 32, hexadecimal ? "0x%llx" : "%llu", (unsigned long long)number_of(fact, value));
    return text;
}

static void add_fact(struct writer *writer, struct part name)
{
    const void *value;
    char number[32];
    const struct fact *fact = look_up(writer->known, name, &value);
    const char *text = "unknown";
    if (has_value(fact, value))
        text = is_text(fact) ? *(const char *const *)value : format_number(fact, value, number);
    add(writer, (struct part){text, strlen(text)});
}

/* Writes the fact `told` if it is known, or else the sentence of the reason. */
static void add_sentence(struct writer *writer, struct part told, struct part name)
{
    const void *value;
    const struct fact *fact = look_up(writer->known, told, &value);
    if (has_value(fact, value)) {
        add_fact(writer, told);
        return;
    }
    fact = look_up(writer->known, name, &value);
    const char *sentence = reason_sentence((unsigned)number_of(fact, value));
    size_t length = strlen(sentence);
    add(writer, (struct part){sentence, length - (length && sentence[length - 1] == '.')});
}

static void add_if_known(struct writer *writer, struct part before, struct part name)
{
    const void *value;
    const struct fact *fact = look_up(writer->known, name, &value);
    if (!has_value(fact, value))
        return;
    add(writer, before);
    add_fact(writer, name);
}

static void add_difference(struct writer *writer, struct part one, struct part other)
{
    const void *value, *less;
    char text[32];
    const struct fact *fact = look_up(writer->known, one, &value), *from = look_up(writer->known, other, &less);
    uint64_t above = number_of(fact, value), below = number_of(from, less);
    snprintf(text, sizeof text, "%s%llu", above < below ? "-" : "",
             (unsigned long long)(above < below ? below - above : above - below));
    add(writer, (struct part){text, strlen(text)});
}

/* Writes the value of a field, the text between two braces. */
static void add_field(struct writer *writer, struct part field)
{
    const void *value;
    struct part before, one = {"", 0};
    if (split(&field, '|', &before)) {
        add(writer, writer->known->ended ? field : before);
    } else if (split(&field, '?', &before)) {
        const struct fact *fact = look_up(writer->known, before, &value);
        split(&field, ':', &one);
        add(writer, number_of(fact, value) == 1 ? one : field);
    } else if (split(&field, '>', &before)) {
        add_if_known(writer, before, field);
    } else if (split(&field, '!', &before)) {
        add_sentence(writer, before, field);
    } else if (split(&field, '-', &before)) {
        add_difference(writer, before, field);
    } else {
        add_fact(writer, field);
    }
}

/* Ends the sentence; one that does not fit ends after a whole word, with dots. */
static void end(struct writer *writer)
{
    static const struct part dots = {"...", 3};
    if (writer->used + 1 == writer->size) {
        writer->used -= dots.length;
        while (writer->used && writer->text[writer->used] != ' ')
            writer->used--;
        add(writer, dots);
    }
    writer->text[writer->used] = 0;
}

/* --- conditions */

static const struct {
    const char *name;
    size_t at;
} flags[] = {
#define FLAG(name, member)                                                                                             \
    {                                                                                                                  \
#name, offsetof(struct known, member)                                                                          \
    }
    FLAG(faulty, counts.faulty),    FLAG(heard, counts.heard),     FLAG(still, since.still),
    FLAG(unpolled, since.unpolled), FLAG(stuck, since.stuck),      FLAG(refused, since.refused),
    FLAG(naks, since.naks),         FLAG(peer_ended, asked.ended), FLAG(peer_stopped, asked.stopped)};

static bool is_true(const struct known *known, struct part name)
{
    const void *value;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (is(name, flags[i].name))
            return *(const bool *)((const char *)known + flags[i].at);
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        if (is(name, objects[i].name))
            return *(const void *const *)((const char *)known + objects[i].at);
    if (is(name, "absence"))
        return known->absence && !known->peer;
    const struct fact *fact = look_up(known, name, &value);
    return has_value(fact, value) && (is_text(fact) || number_of(fact, value));
}

static const char *format(const struct fact *fact, const void *value, char number[32])
{
    return is_text(fact) ? *(const char *const *)value : format_number(fact, value, number);
}

/* Returns true if the text is one of the words, which have _ for a blank. */
static bool is_one_of(struct part words, const char *text)
{
    struct part word;
    do {
        bool more = split(&words, '|', &word);
        size_t i = 0, length = strlen(text);
        word = more ? word : words;
        words.length = more ? words.length : 0;
        while (i < length && i < word.length && (text[i] == word.text[i] || (text[i] == ' ' && word.text[i] == '_')))
            i++;
        if (i == length && i == word.length)
            return true;
    } while (words.length);
    return false;
}

/* Compares a fact with another one. With the relation '=' a `right` that names no fact is a list of words. */
static bool compare(const struct known *known, struct part left, struct part right, char relation)
{
    const void *value = NULL, *others = NULL;
    char number[32], other[32];
    const struct fact *fact = look_up(known, left, &value), *than = look_up(known, right, &others);
    if (has_value(fact, value) && is(right, "*"))
        return true;
    if (!has_value(fact, value) || (relation != '=' && !has_value(than, others)))
        return false;
    if (relation == '>')
        return number_of(fact, value) >= number_of(than, others);
    if (has_value(than, others)) {
        const char *text = format(than, others, other);
        right = (struct part){text, strlen(text)};
    }
    return is_one_of(right, format(fact, value, number)) == (relation == '=');
}

/* Returns true if the event has happened, and with one of its words if the condition has some. */
static bool has_happened(const struct known *known, const void *events, struct part condition)
{
    struct known_record record;
    struct part words = condition, event = condition;
    bool any = !split(&words, '=', &event);
    for (size_t i = 0; known->events.read && known->events.read(events, i, &record); i++)
        if (is(event, record.event) && (any || is_one_of(words, record.word)))
            return true;
    return false;
}

static bool holds(const struct known *known, struct part condition)
{
    struct part name;
    if (split(&condition, '!', &name))
        return !holds(known, condition);
    if (split(&condition, '@', &name))
        return has_happened(known, name.length ? known->events.peer : known->events.own, condition);
    if (split(&condition, '<', &name) || split(&condition, '>', &name))
        return compare(known, name, (struct part){condition.text + 1, condition.length - 1},
                       *condition.text == '=' ? '>' : '<');
    if (split(&condition, '=', &name))
        return compare(known, name, condition, '=');
    return is_true(known, condition);
}

static bool all_hold(const struct known *known, struct part conditions)
{
    struct part condition;
    while (split(&conditions, ' ', &condition))
        if (!holds(known, condition))
            return false;
    return !conditions.length || holds(known, conditions);
}

enum diagnosis diagnose_next(enum diagnosis_group group, const struct known *known, enum diagnosis last)
{
    for (enum diagnosis i = last + 1; i < DIAGNOSES; i++)
        if (diagnoses[i].group == group &&
            all_hold(known, (struct part){diagnoses[i].conditions, strlen(diagnoses[i].conditions)}))
            return i;
    return DIAGNOSIS_NOTHING;
}

enum diagnosis diagnose(enum diagnosis_group group, const struct known *known)
{
    return diagnose_next(group, known, DIAGNOSIS_NOTHING);
}

enum diagnosis diagnose_silence(const struct known *known)
{
    return known->peer || known->own->port_down.value ? diagnose(DIAGNOSE_SILENCE, known) : known->absence;
}

enum diagnosis diagnose_wait(struct known *known, char *words)
{
    enum diagnosis diagnosis = diagnose(DIAGNOSE_WAIT, known);
    if (diagnosis == DIAGNOSIS_WAITS_FOR_PEER || diagnosis == DIAGNOSIS_WAITS_FOR_TARGET ||
        diagnosis == DIAGNOSIS_WAITS_FOR_ANSWER)
        known->words = diagnose_words(diagnose_silence(known), known, words, DIAGNOSE_ROOM);
    return diagnosis;
}

/* --- sentences */

char *diagnose_words(enum diagnosis diagnosis, const struct known *known, char *text, size_t size)
{
    struct writer writer = {known, text, size, 0};
    struct part rest = {diagnoses[diagnosis].sentence, strlen(diagnoses[diagnosis].sentence)}, before;
    while (split(&rest, '{', &before)) {
        add(&writer, before);
        split(&rest, '}', &before);
        add_field(&writer, before);
    }
    add(&writer, rest);
    end(&writer);
    return text;
}

char *diagnose_sentence(enum diagnosis diagnosis, const struct known *known, char *text, size_t size)
{
    diagnose_words(diagnosis, known, text, size - 1);
    size_t length = strlen(text);
    if (*text == *diagnoses[diagnosis].sentence && *text >= 'a' && *text <= 'z')
        *text += 'A' - 'a';
    if (length && text[length - 1] != '.')
        memcpy(text + length, ".", 2);
    return text;
}
