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
#include "facts/facts.h"
#include "gsi/cm.h"
#include "report/looked_at.h"
#include "verbs/ask/qp_story_report.h"
#include "verbs/object/acknowledgements.h"
#include "verbs/object/words.h"
#include "wire/op.h"

/* "qp.number": where and how long; "#story_record": how long; "OBJECT_QP": a number, which stands in `at`. */
struct layout_member {
    char name[40];
    uint32_t at, size;
};

static const struct layout_member members[] = {
#define MEMBER(type, member) {#type "." #member, offsetof(struct type, member), sizeof(((struct type *)NULL)->member)},
#define LENGTH(type) {"#" #type, 0, sizeof(struct type)},
#define CONSTANT(name) {#name, name, 0},
#include "report/layout.def"
};

/* A fact about an object (facts/facts.def): its form, and where its value is in the struct of the object. */
enum layout_source { AT, SOME, STATE, STATUS, OPCODE, SUBJECT, REASON, MADE };

struct layout_fact {
    char kind[12], name[28];
    uint32_t form; /* enum fact_form */
    uint32_t source;
    uint32_t at, size; /* of one that is MADE nothing */
};

#define SOURCE(kind, chapter, of) typedef struct of source_of_##kind;
FACTS_KINDS(SOURCE)

#define FROM_AT(member) AT, MEMBER, member
#define FROM_WHEN(member) AT, MEMBER, member
#define FROM_SOME(member) SOME, MEMBER, member
#define FROM_STATE(member) STATE, MEMBER, member
#define FROM_STATUS(member) STATUS, MEMBER, member
#define FROM_OPCODE(member) OPCODE, MEMBER, member
#define FROM_SUBJECT(member) SUBJECT, MEMBER, member
/* clang-format off */
#define FROM_REASON(member) REASON, MEMBER, member
/* clang-format on */
#define FROM_MADE MADE, NOTHING, 0
#define PLACE_MEMBER(of, member) offsetof(of, member), sizeof(((of *)NULL)->member)
#define PLACE_NOTHING(of, member) 0, 0
#define ROW(of, kind, key, form, from, place, member) {kind, key, form, from, PLACE_##place(of, member)},
#define EXPANDED(...) ROW(__VA_ARGS__)
#define FACT(kind, key, form, source, when, meaning) EXPANDED(source_of_##kind, #kind, #key, FACT_##form, FROM_##source)
#define KIND(kind, chapter, of) FACTS_##kind(FACT)
static const struct layout_fact facts[] = {FACTS_KINDS(KIND)};

/* Words by number; NULL: it has none. */
enum { STATES = IBV_QPS_ERR + 1, STATUSES = 32, OPCODES = 32, ACCESS_BITS = 32, SUBJECTS = STORY_PACKET + 1 };

#define TABLES(TABLE)                                                                                                  \
    TABLE(states, STATES, words_state)                                                                                 \
    TABLE(statuses, STATUSES, words_status)                                                                            \
    TABLE(opcodes, OPCODES, words_opcode)                                                                              \
    TABLE(fields, EVENT_FIELDS, event_field_word)                                                                      \
    TABLE(subjects, SUBJECTS, qp_story_subject)                                                                        \
    TABLE(connections, CONNECTION_STATES, connection_state_name)                                                       \
    TABLE(resolutions, RESOLUTION_STATES, resolution_state_name)                                                       \
    TABLE(identifiers, IDENTIFIER_STATES, identifier_state_name)
#define WORDS(name, size, word) static const char *name[size];
TABLES(WORDS)

static char access_bits[ACCESS_BITS + 1][WORDS_SIZE / 8];                       /* the last: of none */
static uint8_t kept[EVENT_KINDS], words[EVENT_FIELDS], with_sign[EVENT_FIELDS]; /* 1: the field is a word, or has one */

static const struct layout_reason {
    const char *name;
    uint32_t number;
} reasons[] = {
#define REASON(number, name, sentence) {#name, number},
#include "diag/diag.def"
#undef REASON
};

/* How many there are of what the pointers of struct layout lead to. */
struct layout_counts {
#define NUMBER(name, size, word) uint32_t name;
    uint32_t members, facts;
    TABLES(NUMBER)
    uint32_t reasons;
};

/* First the pointers, then numbers of 32 bits, so that there are no gaps on any machine. */
struct layout {
    char magic[24];
    const struct layout *self;
    const struct process *process; /* NULL: no device is open */
    const char *program, *directory;
    const struct layout_member *members;
    const struct layout_fact *facts;
#define PLACE(name, size, word) const char *const *name;
    TABLES(PLACE)
    const char (*access_bits)[WORDS_SIZE / 8];
    const uint8_t *kept, *words, *with_sign;
    const struct event_line *events;
    const struct op *operations;
    const struct layout_reason *reasons;
    const struct device *devices;
    const struct session_operations *connect, *resolve;
    struct layout_counts counts;
    int32_t pid;
    uint32_t epoch[2]; /* the number to add to a time of the process for nanoseconds since 1970: the lower half first */
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

__attribute__((used)) static struct layout layout = {
    .magic = LAYOUT_MAGIC,
    .self = &layout,
    .members = members,
    .facts = facts,
    .access_bits = access_bits,
    .kept = kept,
    .words = words,
    .with_sign = with_sign,
    .events = event_lines,
    .operations = op_table,
    .reasons = reasons,
    .connect = &connect_operations,
    .resolve = &resolve_operations,
#define COUNTED(name, size, word) .name = size,
    .counts = {.members = COUNT(members), .facts = COUNT(facts), .reasons = COUNT(reasons), TABLES(COUNTED)},
#define PLACED(name, size, word) .name = name,
    TABLES(PLACED)};

static void collect_words(void)
{
#define COLLECT(name, size, word)                                                                                      \
    for (unsigned i = 0; i < (size); i++)                                                                              \
        name[i] = word(i);
    TABLES(COLLECT)
    for (unsigned i = 0; i < EVENT_FIELDS; i++) {
        words[i] = event_field_is_word((enum event_field)i);
        with_sign[i] = event_field_is_signed((enum event_field)i);
    }
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
    unsigned count;
    collect_words();
    layout.devices = config_devices(&count);
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
