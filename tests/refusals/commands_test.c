/* No command of librdmacm is refused without its line, and no line has two causes: writes each command of
 * calls/ucma.def with each argument wrong in turn, as the library's functions write it and as they never do, and
 * reads the log. Prints TAP. A row of commands.def:
 *
 *   ROW(COMMAND, "what is wrong", REASON, errno, call)   the expression is true when the command was refused; its one
 *                                                        line names the function of librdmacm and has this reason
 *   QUIET(...)                                           likewise, and the line is at the level info */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands_set_up.h"
#include "gsi/cm/cm.h"
#include "lines.h"

/* -- rows of commands.def */

#define NAME(prefix, line) NAME_OF(prefix, line)
#define NAME_OF(prefix, line) prefix##_##line

#define QUIET ROW
#define ROW(command, wrong, reason, error, call)                                                                       \
    static bool NAME(refused, __LINE__)(void)                                                                          \
    {                                                                                                                  \
        return (call);                                                                                                 \
    }
#include "commands.def"
#undef ROW
#undef QUIET

struct row {
    uint32_t command;
    const char *wrong;
    enum reason reason;
    int error;
    enum log_level level;
    bool (*refused)(void);
};

static const struct row rows[] = {
#define ENTRY(command, wrong, reason, error, level)                                                                    \
    {UCMA_##command, wrong, REASON_##reason, error, level, NAME(refused, __LINE__)},
#define ROW(command, wrong, reason, error, call) ENTRY(command, wrong, reason, error, LOG_WARN)
#define QUIET(command, wrong, reason, error, call) ENTRY(command, wrong, reason, error, LOG_INFO)
#include "commands.def"
};

enum { ROWS = sizeof rows / sizeof *rows };

/* -- what is tried of every command */

static const struct command {
    const char *name;
    size_t least_in, least_out, length;
    uint16_t object;
    bool quiet;
} commands[UCMA_COMMANDS] = {
#define COMMAND(number, page, how, serve, layout, least, answer, identifier)                                           \
    [UCMA_##number] = {#page, (least), (answer), sizeof(struct layout), (identifier), !strcmp(#how, "quiet")},
#include "calls/ucma.def"
};

enum every { TOO_SHORT, NO_ROOM, NO_IDENTIFIER, OTHER_CHANNEL, EVERIES };

static const struct {
    const char *wrong;
    enum reason reason;
    int error;
} everies[EVERIES] = {
    [TOO_SHORT] = {"one byte too short", REASON_CM_COMMAND_LENGTH, EINVAL},
    [NO_ROOM] = {"room for one byte too few", REASON_CM_ANSWER_ROOM, ENOSPC},
    [NO_IDENTIFIER] = {"no such identifier", REASON_CM_NO_IDENTIFIER, ENOENT},
    [OTHER_CHANNEL] = {"an identifier of another channel", REASON_CM_OTHER_CHANNEL, EINVAL},
};

struct place {
    uint32_t command;
    enum every every;
};

/* RESOLVE_IB_SERVICE is checked from its number on; a membership has separate rows, and so has MIGRATE_ID. */
static bool applies(const struct place *place)
{
    const struct command *command = &commands[place->command];
    if (!command->name)
        return false;
    if (place->every == TOO_SHORT)
        return command->least_in > 0;
    if (place->every == NO_ROOM)
        return command->least_out > 0;
    if (place->every == OTHER_CHANNEL && (place->command == UCMA_LEAVE_MCAST || place->command == UCMA_MIGRATE_ID))
        return false;
    return command->object != UCMA_NO_OBJECT;
}

static struct refused row_of_every(const struct place *place)
{
    const struct command *command = &commands[place->command];
    bool membership = place->every == NO_IDENTIFIER && place->command == UCMA_LEAVE_MCAST;
    bool usual = command->quiet || place->command == UCMA_DISCONNECT;
    return (struct refused){.call = command->name,
                            .wrong = everies[place->every].wrong,
                            .name = command->name,
                            .reason = membership ? REASON_CM_NO_MEMBERSHIP : everies[place->every].reason,
                            .error = everies[place->every].error,
                            .level = usual ? LOG_INFO : LOG_WARN};
}

static bool every_is_refused(const void *context)
{
    const struct place *place = context;
    const struct command *command = &commands[place->command];
    uint32_t id = place->every == OTHER_CHANNEL ? on.elsewhere : NO_SUCH;
    uint8_t in[sizeof(struct ucma_connect) + sizeof(struct ucma_write_event)] = {0};
    size_t length = place->every == TOO_SHORT ? command->least_in - 1 : command->length;
    uint16_t room = place->every == NO_ROOM ? (uint16_t)(command->least_out - 1) : 1024;
    if (command->object != UCMA_NO_OBJECT)
        memcpy(in + command->object, &id, sizeof id);
    return say_with(on.channel, on.fd, place->command, in, length, room);
}

/* -- what is not a command */

static bool is_no_header(void)
{
    return say_bytes("1234567", 7);
}

static bool is_no_command(void)
{
    return say_bytes(&(struct ucma_header){.command = 99}, sizeof(struct ucma_header));
}

static bool never_was_a_command(void)
{
    return say_bytes(&(struct ucma_header){.command = UCMA_GET_OPTION}, sizeof(struct ucma_header));
}

static bool is_cut_off(void)
{
    return say_bytes(&(struct ucma_header){.command = UCMA_LISTEN, .in = 8}, sizeof(struct ucma_header));
}

static const struct {
    struct refused row;
    bool (*refused)(void);
} strays[] = {
    {{"a write", "no header", "rdma_cm", REASON_CM_COMMAND_LENGTH, EINVAL, LOG_WARN}, is_no_header},
    {{"a write", "no command", "rdma_cm", REASON_CM_COMMAND, EINVAL, LOG_WARN}, is_no_command},
    {{"a write", "a number without a command", "rdma_cm", REASON_CM_COMMAND, ENOSYS, LOG_WARN}, never_was_a_command},
    {{"a write", "cut off", "rdma_cm", REASON_CM_COMMAND_LENGTH, EINVAL, LOG_WARN}, is_cut_off},
};

enum { STRAYS = sizeof strays / sizeof *strays, MOST = ROWS + STRAYS + UCMA_COMMANDS * EVERIES };

/* -- all */

static char told[MOST][LINE];
static struct refused tried[MOST];
static size_t count;
static unsigned wrong, silent_ones;

static void try_it(struct refused row, bool (*refused)(const void *), const void *context)
{
    bool silent;
    tried[count] = row;
    wrong += !lines_check(&row, refused, context, told[count++], &silent);
    silent_ones += silent;
}

static bool call_it(const void *function)
{
    return (*(bool (*const *)(void))function)();
}

static void try_rows(void)
{
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        const char *name = commands[row->command].name;
        try_it((struct refused){name, row->wrong, name, row->reason, row->error, row->level}, call_it, &row->refused);
    }
}

static bool no_command_is_refused_silently(void)
{
    for (size_t i = 0; i < STRAYS; i++)
        try_it(strays[i].row, call_it, &strays[i].refused);
    for (uint32_t i = 0; i < UCMA_COMMANDS * EVERIES; i++) {
        struct place place = {i / EVERIES, i % EVERIES};
        if (applies(&place))
            try_it(row_of_every(&place), every_is_refused, &place);
    }
    try_rows();
    printf("# %zu refused commands, %u silent\n", count, silent_ones);
    return !wrong && !silent_ones;
}

static struct refused row_of(size_t place)
{
    return tried[place];
}

static bool no_two_causes_have_one_line(void)
{
    return lines_differ(told, count, row_of);
}

/* Where its number is not all that a command looks at, commands.def says what else. */
static bool each_command_has_a_row(void)
{
    static const uint32_t looks_at_no_more[] = {UCMA_DESTROY_ID, UCMA_QUERY_ROUTE, UCMA_GET_EVENT, UCMA_GET_OPTION};
    bool fine = true;
    for (uint32_t command = 0; command < UCMA_COMMANDS; command++) {
        bool found = false;
        for (size_t i = 0; i < sizeof looks_at_no_more / sizeof *looks_at_no_more; i++)
            found |= looks_at_no_more[i] == command;
        for (size_t i = 0; i < ROWS; i++)
            found |= rows[i].command == command;
        if (!found)
            printf("# commands.def has no row of command %u, %s\n", command, commands[command].name);
        fine &= found;
    }
    return fine;
}

static bool listens(const void *context)
{
    return SAY(LISTEN, ucma_valued, .id = on.bound, .value = 1);
}

static bool a_child_of_a_fork_has_its_line(void)
{
    const struct refused row = {"rdma_listen", "in the child of a fork", "rdma_listen", REASON_FORKED, EIO, LOG_WARN};
    return lines_check_in_child(&row, listens);
}

int main(void)
{
    static const struct {
        const char *name;
        bool (*holds)(void);
    } tests[] = {
        {"each command has a row", each_command_has_a_row},
        {"no command is refused silently, and each line has its reason and its function",
         no_command_is_refused_silently},
        {"no two causes have one line", no_two_causes_have_one_line},
        {"a child of a fork has its line", a_child_of_a_fork_has_its_line},
    };
    size_t number = sizeof tests / sizeof *tests;
    bool failed = false;
    if (!lines_start())
        return 1;
    commands_set_up();
    printf("1..%zu\n", number);
    for (size_t i = 0; i < number; i++) {
        bool fine = tests[i].holds();
        printf("%sok %zu - %s\n", fine ? "" : "not ", i + 1, tests[i].name);
        failed |= !fine;
    }
    commands_tear_down();
    lines_end();
    return failed;
}
