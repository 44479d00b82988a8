#include "report/layout.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "diag/diag.h"
#include "events/last_events.h"
#include "events/lines.h"
#include "events/story.h"
#include "report/looked_at.h"
#include "verbs/ask/qp_story.h"
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

/* Words by number; NULL: it has none. */
enum { STATES = IBV_QPS_ERR + 1, STATUSES = 32, OPCODES = 32, ACCESS_BITS = 32, SUBJECTS = STORY_PACKET + 1 };

static const char *states[STATES], *statuses[STATUSES], *opcodes[OPCODES], *fields[EVENT_FIELDS], *subjects[SUBJECTS];
static char access_bits[ACCESS_BITS + 1][WORDS_SIZE / 8]; /* the last: of none */
static uint8_t kept[EVENT_KINDS];

static const struct layout_reason {
    const char *name;
    uint32_t number;
} reasons[] = {
#define REASON(number, name, sentence) {#name, number},
#include "diag/diag.def"
#undef REASON
};

/* First the pointers, then numbers of 32 bits, so that there are no gaps on any machine. */
struct layout {
    char magic[24];
    const struct layout *self;
    const struct process *process; /* NULL: no device is open */
    const char *program, *directory;
    const struct layout_member *members;
    const char *const *states, *const *statuses, *const *opcodes, *const *fields, *const *subjects;
    const char (*access_bits)[WORDS_SIZE / 8];
    const uint8_t *kept;
    const struct event_line *events;
    const struct op *operations;
    const struct layout_reason *reasons;
    uint32_t members_count, states_count, statuses_count, opcodes_count, fields_count, subjects_count, reasons_count;
    int32_t pid;
    uint32_t epoch[2]; /* the number to add to a time of the process for nanoseconds since 1970: the lower half first */
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

__attribute__((used)) static struct layout layout = {
    .magic = LAYOUT_MAGIC,
    .self = &layout,
    .members = members,
    .states = states,
    .statuses = statuses,
    .opcodes = opcodes,
    .fields = fields,
    .subjects = subjects,
    .access_bits = access_bits,
    .kept = kept,
    .events = event_lines,
    .operations = op_table,
    .reasons = reasons,
    .members_count = COUNT(members),
    .states_count = STATES,
    .statuses_count = STATUSES,
    .opcodes_count = OPCODES,
    .fields_count = EVENT_FIELDS,
    .subjects_count = SUBJECTS,
    .reasons_count = COUNT(reasons),
};

static void collect_words(void)
{
    for (unsigned i = 0; i < STATES; i++)
        states[i] = words_state(i);
    for (unsigned i = 0; i < STATUSES; i++)
        statuses[i] = words_status(i);
    for (unsigned i = 0; i < OPCODES; i++)
        opcodes[i] = words_opcode(i);
    for (unsigned i = 0; i < EVENT_FIELDS; i++)
        fields[i] = event_field_word((enum event_field)i);
    for (unsigned i = 0; i < SUBJECTS; i++)
        subjects[i] = qp_story_subject(i);
    for (unsigned i = 0; i < EVENT_KINDS; i++)
        kept[i] = event_kept((enum event)i);
    for (unsigned bit = 0; bit <= ACCESS_BITS; bit++) {
        char words[WORDS_SIZE];
        snprintf(access_bits[bit], sizeof access_bits[bit], "%.31s",
                 words_access(bit < ACCESS_BITS ? 1u << bit : 0, words));
    }
}

static uint64_t since_1970(void)
{
    struct timespec real, monotonic;
    clock_gettime(CLOCK_REALTIME, &real);
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    return (uint64_t)(real.tv_sec - monotonic.tv_sec) * NANOS_SECOND + (uint64_t)(real.tv_nsec - monotonic.tv_nsec);
}

void layout_begin(const struct process *process)
{
    uint64_t epoch = since_1970();
    collect_words();
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
