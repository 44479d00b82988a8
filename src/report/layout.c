#include "report/layout.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "base/read_clock.h"
#include "cm/connect.h"
#include "cm/resolve.h"
#include "config/config.h"
#include "diag/diag.h"
#include "events/last_events.h"
#include "events/lines.h"
#include "events/story.h"
#include "events/words.h"
#include "facts/facts.h"
#include "gsi/cm/cm.h"
#include "report/object_types.h"
#include "verbs/ask/qp_story_report.h"
#include "verbs/object/acknowledgements.h"
#include "wire/op.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A line of layout.def. "qp.number" is a member: `what` is the struct that it is, or points to ("*"), or "" for a
 * number. "#story_record" is a struct, whose size alone is given. "OBJECT_QP" is a constant, its value in `at`. */
struct layout_member {
    char name[40], what[16];
    uint32_t at, size;
};

static const struct layout_member members[] = {
#define PLACE(type, member) offsetof(struct type, member), sizeof(((struct type *)NULL)->member)
#define MEMBER(type, member) TARGET(type, member, "")
#define TARGET(type, member, what) {#type "." #member, what, PLACE(type, member)},
#define LENGTH(type) {"#" #type, "", 0, sizeof(struct type)},
#define CONSTANT(name) {#name, "", name, 0},
#include "report/layout.def"
#undef MEMBER
#undef PLACE
};

/* A fact about an object (facts/facts.def): its form, its source as in the list, and where it is in the object's
 * struct. */
struct layout_fact {
    char kind[12], name[28], source[40];
    uint32_t form;     /* enum fact_form */
    uint32_t at, size; /* 0 for a fact that is MADE */
};

#define SOURCE(kind, chapter, of) typedef struct of source_of_##kind;
FACTS_KINDS(SOURCE)

#define FROM_AT(member) MEMBER, member
#define FROM_WHEN FROM_AT
#define FROM_SOME FROM_AT
#define FROM_STATE FROM_AT
#define FROM_STATUS FROM_AT
#define FROM_OPCODE FROM_AT
#define FROM_SUBJECT FROM_AT
#define FROM_REASON FROM_AT
#define FROM_MADE NOTHING, 0
#define PLACE_MEMBER(of, member) offsetof(of, member), sizeof(((of *)NULL)->member)
#define PLACE_NOTHING(of, member) 0, 0
#define ROW(of, kind, key, source, form, place, member) {kind, key, source, form, PLACE_##place(of, member)},
#define EXPANDED(...) ROW(__VA_ARGS__)
#define FACT(kind, key, form, source, when, meaning)                                                                   \
    EXPANDED(source_of_##kind, #kind, #key, #source, FACT_##form, FROM_##source)
#define KIND(kind, chapter, of) FACTS_##kind(FACT)
static const struct layout_fact facts[] = {FACTS_KINDS(KIND)};

/* Tables of words by number, each with the name of a source of facts; NULL: the number has no word. */
enum { STATES = IBV_QPS_ERR + 1, STATUSES = 32, OPCODES = 32, ACCESS_BITS = 32, SUBJECTS = STORY_PACKET + 1 };

#define TABLES(TABLE)                                                                                                  \
    TABLE(STATE, STATES, words_state)                                                                                  \
    TABLE(STATUS, STATUSES, words_status)                                                                              \
    TABLE(OPCODE, OPCODES, words_opcode)                                                                               \
    TABLE(FIELD, EVENT_FIELDS, event_field_word)                                                                       \
    TABLE(SUBJECT, SUBJECTS, qp_story_subject)                                                                         \
    TABLE(CONNECTION, CONNECTION_STATES, connection_state_name)                                                        \
    TABLE(RESOLUTION, RESOLUTION_STATES, resolution_state_name)                                                        \
    TABLE(IDENTIFIER, IDENTIFIER_STATES, identifier_state_name)
#define WORDS(name, size, word) static const char *words_of_##name[size];
TABLES(WORDS)

static char access_bits[ACCESS_BITS + 1][WORDS_SIZE / 8]; /* the last: the word for no access */
static uint8_t kept[EVENT_KINDS], forms[EVENT_FIELDS];    /* 1: the field is a word; 2: it has a sign */

static const struct layout_reason {
    const char *name;
    uint32_t number;
} reasons[] = {
#define REASON(number, name, sentence) {#name, number},
#include "diag/diag.def"
#undef REASON
};

/* An array or a struct that a debugger reads. This struct has no gaps on any machine. */
struct layout_part {
    char name[12];
    uint32_t count;
    const void *at;
};

static const struct layout_part parts[] = {
#define WORDS_PART(name, size, word) {#name, size, words_of_##name},
#define PART(name) #name, COUNT(name), name
    TABLES(WORDS_PART) /* and others */
    {PART(members)},
    {PART(facts)},
    {PART(access_bits)},
    {PART(kept)},
    {PART(forms)},
    {PART(reasons)},
    {"events", EVENT_KINDS, event_lines},
    {"operations", COUNT(op_table), op_table},
    {"connect", 1, &connect_operations},
    {"resolve", 1, &resolve_operations},
};

/* Pointers come first, then numbers of 32 bits: so this struct has no gaps, either. */
__attribute__((used)) static struct layout {
    char magic[24];
    const struct layout *self;
    const struct process *process; /* NULL: no device is open */
    const char *program, *directory;
    const struct device *devices;
    const struct layout_part *parts;
    uint32_t count; /* of parts */
    int32_t pid;
    uint32_t epoch[2]; /* the number to add to a time of the process for nanoseconds since 1970: the lower half first */
} layout = {.magic = LAYOUT_MAGIC, .self = &layout, .parts = parts, .count = COUNT(parts)};

static void collect_words(void)
{
#define COLLECT(name, size, word)                                                                                      \
    for (unsigned i = 0; i < (size); i++)                                                                              \
        words_of_##name[i] = word(i);
    TABLES(COLLECT)
    for (enum event_field i = 0; i < EVENT_FIELDS; i++)
        forms[i] = event_field_is_word(i) ? 1 : event_field_is_signed(i) ? 2 : 0;
    for (unsigned i = 0; i < EVENT_KINDS; i++)
        kept[i] = event_kept((enum event)i);
    for (unsigned bit = 0; bit <= ACCESS_BITS; bit++) {
        char text[WORDS_SIZE];
        snprintf(access_bits[bit], sizeof access_bits[bit], "%.31s",
                 words_access(bit < ACCESS_BITS ? 1u << bit : 0, text));
    }
}

void layout_begin(const struct process *process)
{
    uint64_t epoch = (uint64_t)read_clock_epoch();
    collect_words();
    layout.devices = config_device(0);
    layout.program = program_invocation_short_name;
    layout.directory = node_path(process->node);
    layout.pid = (int32_t)getpid();
    layout.epoch[0] = (uint32_t)epoch;
    layout.epoch[1] = (uint32_t)(epoch >> 32);
    layout.process = process;
}

void layout_end(const struct process *process)
{
    if (layout.process == process)
        layout.process = NULL;
}
