/* No refusal without its line, and no line with two causes: makes each call of calls/verbs.def with each wrong argument
 * in turn, as objects.def and queues.def list them, and reads what the log says of it. Prints TAP. A row:
 *
 *   ROW(verb, "what is wrong", REASON, errno, call)   the expression is true when the call was refused; its one line
 *                                                     names the verb and has this reason
 *   ROW_AS(verb, name, ...)                           likewise, and the line has another name: what the program wrote
 *   QUIET(...)                                        as ROW, and the line is at the level info, as programs make the
 *                                                     call to learn whether the device offers it
 *   VOID(verb, "what is wrong", REASON, call)         the call answers nothing
 *   EVERY(verb, "why")                                the verb refuses nothing */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "config/config.h"
#include "config/device_state.h"
#include "lines.h"
#include "set_up.h"
#include "verbs/object/context.h"
#include "verbs/object/object.h"

/* The expression with a number that the program overwrote. */
#define SPOILT(number, call)                                                                                           \
    __extension__({                                                                                                    \
        (number) ^= 1 << 29;                                                                                           \
        bool was_refused = (call);                                                                                     \
        (number) ^= 1 << 29;                                                                                           \
        was_refused;                                                                                                   \
    })

/* The expression on a device that allows no such objects. */
#define WITH_LIMIT(member, call)                                                                                       \
    __extension__({                                                                                                    \
        uint32_t *limit = &((struct device *)(uintptr_t)context_of(on.context)->device)->limits.member, most = *limit; \
        *limit = 0;                                                                                                    \
        bool was_refused = (call);                                                                                     \
        *limit = most;                                                                                                 \
        was_refused;                                                                                                   \
    })

/* Makes the call on a port of InfiniBand; on a port with an MTU of `bytes`. */
#define ON_INFINIBAND(call)                                                                                            \
    __extension__({                                                                                                    \
        struct device *device = (struct device *)(uintptr_t)context_of(on.context)->device;                            \
        uint8_t before = device->link_layer;                                                                           \
        device->link_layer = IBV_LINK_LAYER_INFINIBAND;                                                                \
        bool was_refused = (call);                                                                                     \
        device->link_layer = before;                                                                                   \
        was_refused;                                                                                                   \
    })
#define WITH_MTU(bytes, call)                                                                                          \
    __extension__({                                                                                                    \
        struct device_state *now = (struct device_state *)(uintptr_t)device_now(context_of(on.context)->device);       \
        uint32_t before = now->mtu;                                                                                    \
        now->mtu = (bytes);                                                                                            \
        bool was_refused = (call);                                                                                     \
        now->mtu = before;                                                                                             \
        was_refused;                                                                                                   \
    })

#define NAME(prefix, line) NAME_OF(prefix, line)
#define NAME_OF(prefix, line) prefix##_##line

/* -- the functions of the rows, and their table */

#define QUIET ROW
#define ROW_AS(verb, name, wrong, reason, error, call) ROW(verb, wrong, reason, error, call)
#define VENDOR(answer, type, name, parameters, arguments) type softverbs_##name parameters;
#include "calls/efa.def"

#define VOID(verb, wrong, reason, call)                                                                                \
    ROW(verb, wrong, reason, 0, __extension__({                                                                        \
            (void)(call);                                                                                              \
            true;                                                                                                      \
        }))
#define EVERY(verb, why)

#define ROW(verb, wrong, reason, error, call)                                                                          \
    static bool NAME(object, __LINE__)(void)                                                                           \
    {                                                                                                                  \
        return (call);                                                                                                 \
    }
#include "objects.def"
#undef ROW
#define ROW(verb, wrong, reason, error, call)                                                                          \
    static bool NAME(queue, __LINE__)(void)                                                                            \
    {                                                                                                                  \
        return (call);                                                                                                 \
    }
#include "queues.def"
#undef ROW
#undef ROW_AS
#undef QUIET
#undef VOID
#undef EVERY

struct row {
    const char *verb, *name, *wrong; /* wrong NULL: it refuses nothing */
    enum reason reason;
    int error; /* 0: the call answers nothing */
    enum log_level level;
    bool (*refused)(void);
};

#define EVERY(verb, why) {#verb, #verb, NULL, 0, 0, 0, NULL},
#define ROW(verb, wrong, reason, error, call) ENTRY(verb, #verb, wrong, reason, error, LOG_WARN)
#define ROW_AS(verb, name, wrong, reason, error, call) ENTRY(verb, name, wrong, reason, error, LOG_WARN)
#define QUIET(verb, wrong, reason, error, call) ENTRY(verb, #verb, wrong, reason, error, LOG_INFO)
#define VOID(verb, wrong, reason, call) ENTRY(verb, #verb, wrong, reason, 0, LOG_WARN)

static const struct row rows[] = {
#define ENTRY(verb, name, wrong, reason, error, level)                                                                 \
    {#verb, name, wrong, REASON_##reason, error, level, NAME(object, __LINE__)},
#include "objects.def"
#undef ENTRY
#define ENTRY(verb, name, wrong, reason, error, level)                                                                 \
    {#verb, name, wrong, REASON_##reason, error, level, NAME(queue, __LINE__)},
#include "queues.def"
};

enum { ROWS = sizeof rows / sizeof *rows };

static char told[ROWS][LINE]; /* the line of each row, for what two of them share */

/* -- all rows */

static struct refused row_of(size_t place)
{
    const struct row *row = &rows[place];
    return (struct refused){.call = row->verb,
                            .wrong = row->wrong,
                            .name = row->name + (row->name[0] == '_'),
                            .reason = row->reason,
                            .error = row->error,
                            .level = row->level};
}

static bool is_refused(const void *row)
{
    return ((const struct row *)row)->refused();
}

static bool no_call_is_refused_silently(void)
{
    unsigned refused = 0, silent_ones = 0, wrong = 0;
    for (size_t i = 0; i < ROWS; i++) {
        const struct refused row = row_of(i);
        bool silent = false;
        if (!rows[i].wrong)
            continue;
        wrong += !lines_check(&row, is_refused, &rows[i], told[i], &silent);
        silent_ones += silent;
        refused++;
    }
    printf("# %u refused calls, %u silent\n", refused, silent_ones);
    return !wrong && !silent_ones && refused;
}

static bool no_two_causes_have_one_line(void)
{
    return lines_differ(told, ROWS, row_of);
}

static bool has_row(const char *verb)
{
    for (size_t i = 0; i < ROWS; i++)
        if (!strcmp(rows[i].verb, verb))
            return true;
    printf("# no row for %s\n", verb);
    return false;
}

static bool each_verb_has_a_row(void)
{
    static const char *const names[] = {
#define VERB(answer, type, name, work, parameters, arguments) #name,
#define NEWER_VERB(answer, type, name, work, parameters, arguments) #name,
#define MEMBER(table, answer, type, member, name, work, parameters, arguments) #name,
#define FAST(table, answer, type, name, work, parameters, arguments) "ibv_" #name,
#define ON_OBJECT(object, type, member, name, parameters, arguments) #name,
#define BUILDER(type, name, parameters, arguments) "ibv_" #name,
#define NEWER_BUILDER(type, name, parameters, arguments) "ibv_" #name,
#define ITERATOR(type, name, parameters, arguments) "ibv_" #name,
#define FIRST_READER(type, name, parameters, arguments) "ibv_wc_" #name,
#define READER(type, name, flag, parameters, arguments) "ibv_wc_" #name,
#include "calls/verbs.def"
    };
    bool fine = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fine &= has_row(names[i]);
    return fine;
}

/* A refusal of the C library or the kernel has no check of ours, and its line all the same. */
static bool tells(bool refused, const char *name, enum reason reason)
{
    char text[LINES], line[LINE];
    lines_read(text);
    bool fine = refused && lines_count(text, line) == 1 && lines_name_reason(line, reason) && strstr(line, name);
    if (!fine)
        printf("# %srefused: %s", refused ? "" : "not ", text);
    return fine;
}

static bool what_the_kernel_refuses_has_a_line(void)
{
    struct rlimit files, none;
    getrlimit(RLIMIT_NOFILE, &files);
    none = (struct rlimit){3, files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    bool refused = !ibv_create_comp_channel(on.context);
    setrlimit(RLIMIT_NOFILE, &files);
    return tells(refused, "ibv_create_comp_channel: ", REASON_SYSTEM_CALL);
}

static bool a_lack_of_memory_has_a_line(void)
{
    struct rlimit space, none;
    getrlimit(RLIMIT_AS, &space);
    none = (struct rlimit){1 << 20, space.rlim_max};
    setrlimit(RLIMIT_AS, &none);
    bool refused = !ibv_create_cq(on.context, (int)context_of(on.context)->device->limits.max_cqe, NULL, NULL, 0);
    setrlimit(RLIMIT_AS, &space);
    return tells(refused, "ibv_create_cq: ", REASON_NO_MEMORY);
}

static bool makes_no_queue_pair(const void *context)
{
    return !create_plain_qp((struct ibv_qp_cap){1, 1, 1, 1, 0});
}

static bool makes_no_flow(const void *context)
{
    return FLOW(on.raw_rts, .type = IBV_FLOW_ATTR_NORMAL, .port = 1);
}

static bool a_child_of_a_fork_has_its_line(void)
{
    const struct refused qp = {"ibv_create_qp", "in a child", "ibv_create_qp: ", REASON_FORKED, ENODEV, LOG_WARN};
    const struct refused flow = {"ibv_create_flow", "in a child", "ibv_create_flow: ", REASON_FORKED, ENODEV, LOG_WARN};
    return lines_check_in_child(&qp, makes_no_queue_pair) && lines_check_in_child(&flow, makes_no_flow);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const char *const no_lack = " # SKIP the sanitizer needs address space itself";
#else
static const char *const no_lack = NULL;
#endif

static const struct {
    const char *name;
    bool (*holds)(void);
    const char *const *skipped; /* says why, or has NULL */
} tests[] = {
    {"each verb has a row", each_verb_has_a_row},
    {"no call is refused silently, and each line has its reason and its call", no_call_is_refused_silently},
    {"no two causes have one line", no_two_causes_have_one_line},
    {"a child of a fork has its line", a_child_of_a_fork_has_its_line},
    {"what the kernel refuses has a line", what_the_kernel_refuses_has_a_line},
    {"a lack of memory has a line", a_lack_of_memory_has_a_line, &no_lack},
};

static void tear_down(void)
{
    ibv_close_device(on.context);
    ibv_close_device(on.other);
    lines_end();
}

int main(void)
{
    size_t count = sizeof tests / sizeof *tests;
    bool failed = false;
    if (!lines_start())
        return 1;
    make_objects();
    printf("1..%zu\n", count);
    for (size_t i = 0; i < count; i++) {
        const char *skipped = tests[i].skipped ? *tests[i].skipped : NULL;
        bool fine = skipped || tests[i].holds();
        printf("%sok %zu - %s%s\n", fine ? "" : "not ", i + 1, tests[i].name, skipped ? skipped : "");
        failed |= !fine;
    }
    tear_down();
    return failed;
}
