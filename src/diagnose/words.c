#include <string.h>

#include "diag/diag.h"
#include "diagnose/diagnose.h"

static const char *const sentences[] = {
    "",
#define DIAGNOSIS(name, sentence) sentence,
#include "diagnose/diagnose.def"
};

/* The members of struct known that sentences name: facts, and objects that have facts. */
static const struct fact members[] = {
#define MEMBER(name, form)                                                                                             \
    {                                                                                                                  \
#name, FACT_##form, offsetof(struct known, name)                                                               \
    }
    MEMBER(process, TEXT),     MEMBER(place, TEXT),      MEMBER(posting, TEXT),
    MEMBER(hint, TEXT),        MEMBER(words, TEXT),      MEMBER(naks_got, NUMBER),
    MEMBER(naks_sent, NUMBER), MEMBER(timeouts, NUMBER), MEMBER(count, NUMBER)};

static const struct {
    const char *name;
    const struct facts_kind *kind;
    size_t at;
} objects[] = {
#define OBJECT(name, of)                                                                                               \
    {                                                                                                                  \
#name, &facts_of_##of, offsetof(struct known, name)                                                            \
    }
    OBJECT(own, qp),       OBJECT(peer, qp),         OBJECT(cq, cq),        OBJECT(srq, srq),
    OBJECT(peer_srq, srq), OBJECT(missing, missing), OBJECT(id, identifier)};

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

/* The part before this letter, which is left out of `rest`; false: it has none. */
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

/* The line of the fact that the sentence names, and its value: NULL where the object is not known. */
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
    return fact && value && !is_text(fact) ? ((const struct fact_number *)value)->value : 0;
}

static bool has_value(const struct fact *fact, const void *value)
{
    if (!fact || !value)
        return false;
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

static void add_if_known(struct writer *writer, struct part before, struct part name)
{
    const void *value;
    const struct fact *fact = look_up(writer->known, name, &value);
    if (!has_value(fact, value))
        return;
    add(writer, before);
    add_fact(writer, name);
}

/* Between the braces. */
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
        const struct fact *fact = look_up(writer->known, field, &value);
        const char *sentence = reason_sentence((unsigned)number_of(fact, value));
        add(writer, (struct part){sentence, strlen(sentence)});
    } else {
        add_fact(writer, field);
    }
}

/* A sentence that does not fit ends after a whole word, with dots. */
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

char *diagnose_words(enum diagnosis diagnosis, const struct known *known, char *text, size_t size)
{
    struct writer writer = {known, text, size, 0};
    struct part rest = {sentences[diagnosis], strlen(sentences[diagnosis])}, before;
    while (split(&rest, '{', &before)) {
        add(&writer, before);
        split(&rest, '}', &before);
        add_field(&writer, before);
    }
    add(&writer, rest);
    end(&writer);
    return text;
}
