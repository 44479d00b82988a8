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
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "config/device_state.h"
#include "diag/log.h"
#include "set_up.h"
#include "verbs/object/object.h"

/* The expression with a number that the program overwrote. */
#define SPOILT(number, call)                                                                                           \
    __extension__({                                                                                                    \
        (number) ^= 1 << 29;                                                                                           \
        bool was_refused = (call);                                                                                     \
        (number) ^= 1 << 29;                                                                                           \
        was_refused;                                                                                                   \
    })

/* The expression on a device that allows none of these objects. */
#define WITH_LIMIT(member, call)                                                                                       \
    __extension__({                                                                                                    \
        uint32_t *limit = &((struct device *)(uintptr_t)context_of(on.context)->device)->limits.member, most = *limit; \
        *limit = 0;                                                                                                    \
        bool was_refused = (call);                                                                                     \
        *limit = most;                                                                                                 \
        was_refused;                                                                                                   \
    })

/* On a port of InfiniBand; on one that sends so many bytes in a packet. */
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

enum { ROWS = sizeof rows / sizeof *rows, LINE = 700 };

/* -- the log */

static char log_path[64];
static int log_file;
static char told[ROWS][LINE]; /* the line of each row, for what two of them share */

/* What was written since the last look. */
static size_t read_log(char *text, size_t size)
{
    size_t length = 0;
    ssize_t more;
    while (length < size - 1 && (more = read(log_file, text + length, size - 1 - length)) > 0)
        length += (size_t)more;
    text[length] = 0;
    return length;
}

/* Between two rows other threads may write, too: what has a reason of the row's kind is the row's. */
static unsigned count_reasons(const char *text, char line[LINE])
{
    unsigned count = 0;
    const char *end;
    line[0] = 0;
    for (; (end = strchr(text, '\n')); text = end + 1) {
        const char *begin = memchr(text, ']', (size_t)(end - text));
        if (!begin || !memmem(text, (size_t)(end - text), "(reason ", 8))
            continue;
        snprintf(line, LINE, "%.*s", (int)(end - begin - 2), begin + 2);
        count++;
    }
    return count;
}

/* -- one row */

static const char *without_underscore(const char *name)
{
    return name[0] == '_' ? name + 1 : name;
}

static bool complain(const struct row *row, const char *what, const char *line)
{
    printf("# %s, %s: %s%s%s\n", row->verb, row->wrong, what, line[0] ? ": " : "", line);
    return false;
}

static bool names_reason(const char *line, enum reason reason)
{
    char words[32];
    snprintf(words, sizeof words, "(reason %u)", reason);
    return strstr(line, words);
}

static bool *silent;

static bool check(const struct row *row, char line[LINE])
{
    char text[4096], what[64];
    read_log(text, sizeof text);
    log_threshold = row->level;
    errno = 0;
    bool refused = row->refused();
    int error = errno;
    log_threshold = LOG_WARN;
    read_log(text, sizeof text);
    unsigned lines = count_reasons(text, line);
    *silent |= !lines;
    if (!refused)
        return complain(row, "was not refused", line);
    if (row->error && error != row->error) {
        snprintf(what, sizeof what, "errno %d instead of %d", error, row->error);
        return complain(row, what, line);
    }
    if (lines != 1) {
        snprintf(what, sizeof what, "%u lines", lines);
        return complain(row, what, text);
    }
    if (!names_reason(line, row->reason))
        return complain(row, reason_name(row->reason), line);
    return strstr(line, without_underscore(row->name)) ? true : complain(row, "does not name the call", line);
}

/* -- all rows */

static bool no_call_is_refused_silently(void)
{
    unsigned refused = 0, silent_ones = 0, wrong = 0;
    for (size_t i = 0; i < ROWS; i++) {
        bool was_silent = false;
        if (!rows[i].wrong)
            continue;
        silent = &was_silent;
        wrong += !check(&rows[i], told[i]);
        silent_ones += was_silent;
        refused++;
    }
    printf("# %u refused calls, %u silent\n", refused, silent_ones);
    return !wrong && !silent_ones && refused;
}

/* Two causes can't be told apart by the line: the same words, numbers and all. */
static bool no_two_causes_have_one_line(void)
{
    bool fine = true;
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < i; j++)
            if (told[i][0] && !strcmp(told[i], told[j])) {
                printf("# %s: \"%s\" and \"%s\" have the line: %s\n", rows[i].verb, rows[j].wrong, rows[i].wrong,
                       told[i]);
                fine = false;
            }
    return fine;
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
#define FAST(table, type, name, work, parameters, arguments) "ibv_" #name,
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

/* What the C library and the kernel refuse has no check of ours, and its line all the same. */
static bool tells(bool refused, const char *name, enum reason reason)
{
    char text[4096], line[LINE];
    read_log(text, sizeof text);
    bool fine = refused && count_reasons(text, line) == 1 && names_reason(line, reason) && strstr(line, name);
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
    {"what the kernel refuses has a line", what_the_kernel_refuses_has_a_line},
    {"a lack of memory has a line", a_lack_of_memory_has_a_line, &no_lack},
};

static void set_up(void)
{
    static char directory[] = "/tmp/softverbs-refusals-XXXXXX";
    if (!mkdtemp(directory))
        exit(1);
    snprintf(log_path, sizeof log_path, "%s/log", directory);
    setenv("SOFTVERBS_DIR", directory, 1);
    setenv("SOFTVERBS_LOG", "info", 1); /* of which log_threshold takes away what a row is not to have */
    setenv("SOFTVERBS_LOG_FILE", log_path, 1);
    log_start();
    log_threshold = LOG_WARN;
    log_file = open(log_path, O_RDONLY | O_CLOEXEC);
    make_objects();
}

static void tear_down(void)
{
    char command[96];
    ibv_close_device(on.context);
    ibv_close_device(on.other);
    snprintf(command, sizeof command, "rm -rf %.*s", (int)(strlen(log_path) - strlen("/log")), log_path);
    if (system(command))
        printf("# %s is left\n", log_path);
}

int main(void)
{
    size_t count = sizeof tests / sizeof *tests;
    bool failed = false;
    set_up();
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
