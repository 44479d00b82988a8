#include "prepare.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/start.h"
#include "config/config.h"
#include "ipc/claim.h"
#include "ipc/node.h"
#include "place.h"
#include "settings.h"
#include "share.h"
#include "tap/capture.h"
#include "tap/fault.h"
#include "tree.h"

static int out_of_memory(void)
{
    complain("There is not enough memory to prepare the program's environment.");
    return EXIT_SELF;
}

/* Puts `item` in front of a list in the environment, unless it stands there already (run inside run). */
static int prepend(const char *name, const char *item)
{
    const char *old = getenv(name);
    size_t length = strlen(item);
    if (old && !strncmp(old, item, length) && (old[length] == ':' || !old[length]))
        return 0;
    char *value;
    if (asprintf(&value, old && *old ? "%s:%s" : "%s", item, old) < 0)
        return ENOMEM;
    int error = setenv(name, value, 1) ? errno : 0;
    free(value);
    return error;
}

/* Puts `item` behind such a list, unless it stands there already. */
static int append(const char *name, const char *item)
{
    const char *old = getenv(name);
    size_t length = strlen(item), there = old ? strlen(old) : 0;
    if (there >= length && !strcmp(old + there - length, item) &&
        (there == length || strchr(": ", old[there - length - 1])))
        return 0;
    char *value;
    if (asprintf(&value, there ? "%s:%s" : "%s%s", there ? old : "", item) < 0)
        return ENOMEM;
    int error = setenv(name, value, 1) ? errno : 0;
    free(value);
    return error;
}

/* What threads of our library agree on by atomic operations looks like a race to ThreadSanitizer, as the library is not
 * instrumented: it sees the copies but not what orders them. The program's own races are told as ever. What the user's
 * variable says comes behind and counts. */
static int calm_thread_sanitizer(void)
{
    return prepend("TSAN_OPTIONS", "ignore_noninstrumented_modules=1");
}

/* NCCL 2.28, which PyTorch 2.9 to 2.11 bring along, ends with SIGSEGV at its first collective on each device that is
 * not mlx5, unless this chooses another way for what GPUs initiate. 2.29 doesn't need it, and earlier ones don't know
 * it. */
static int spare_nccl(void)
{
    return setenv("NCCL_GIN_TYPE", "2", 0);
}

/* The linker takes colons and semicolons in LD_LIBRARY_PATH, and blanks in LD_PRELOAD, for separators, and knows no
 * escape; a preloaded library may also be named without its directory, and is then found in LD_LIBRARY_PATH. */
static int set_library_path(const char *directory)
{
    if (strpbrk(directory, ":;")) {
        complain("The libraries lie in \"%s\"; the dynamic linker can't use a path with a colon or semicolon.",
                 directory);
        return EXIT_SELF;
    }
    return prepend("LD_LIBRARY_PATH", directory) || calm_thread_sanitizer() ? out_of_memory() : 0;
}

static void name_preloaded(const char *directory, const char *name, char path[PLACE_PATH_MAX + 32])
{
    bool whole = !strpbrk(directory, " \t\n");
    snprintf(path, PLACE_PATH_MAX + 32, "%s%s%s", whole ? directory : "", whole ? "/" : "", name);
}

/* Paths are seen by all that comes after. The library itself is preloaded for programs, or libraries of theirs, that
 * look in a DT_RPATH before LD_LIBRARY_PATH: it has the name already that they look for. It comes last, so that a
 * library of the user that stands in front of the verbs still does.
 *
 * AddressSanitizer refuses to start behind a preloaded library, although these do it no harm. */
static int preload(const char *directory)
{
    char paths[PLACE_PATH_MAX + 32], verbs[PLACE_PATH_MAX + 32];
    name_preloaded(directory, "libsoftverbs-paths.so", paths);
    name_preloaded(directory, "libibverbs.so.1", verbs);
    bool done = !prepend("LD_PRELOAD", paths) && !append("LD_PRELOAD", verbs) &&
                !prepend("ASAN_OPTIONS", "verify_asan_link_order=0");
    return done ? 0 : out_of_memory();
}

/* rdma(8) asks the kernel over netlink; ours stands in front of it. Without $PATH the shell's own stays in force. */
static int provide_programs(const char *directory)
{
    char programs[PLACE_PATH_MAX + 8];
    snprintf(programs, sizeof programs, "%s/bin", directory);
    return getenv("PATH") && !access(programs, X_OK) && prepend("PATH", programs) ? out_of_memory() : 0;
}

static int provide_paths(const char *directory)
{
    char path[256], why[512];
    unsigned count;
    const struct device *devices = config_devices(&count);
    if (tree_make(devices, count, path, why, sizeof why)) {
        complain("%s \"softverbs run --no-paths\" does without them.", why);
        return EXIT_SELF;
    }
    if (setenv("SOFTVERBS_PATHS", path, 1))
        return out_of_memory();
    int status = provide_programs(directory);
    return status ? status : preload(directory);
}

/* The program would only get an error from ibv_open_device; here there is a sentence to show. */
static int meet(void)
{
    struct node *node;
    char why[512];
    if (node_open(&node, NULL, why, sizeof why)) {
        complain("%s", why);
        return EXIT_SELF;
    }
    node_close(node);
    return 0;
}

static int provide(bool paths)
{
    char directory[PLACE_PATH_MAX], why[512];
    if (place_libraries(directory, why, sizeof why)) {
        complain("%s", why);
        return EXIT_SELF;
    }
    int status = set_library_path(directory);
    if (!status && paths)
        status = provide_paths(directory);
    return status ? status : meet();
}

static bool is_device_count(const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && number <= DEVICES_MAX;
}

/* The program may change its directory, and all that it starts write to one file: so its name is made whole. */
static int make_whole(const char *name, char path[PLACE_PATH_MAX])
{
    char directory[PLACE_PATH_MAX] = "";
    if (*name != '/' && !getcwd(directory, sizeof directory))
        *directory = 0;
    if (snprintf(path, PLACE_PATH_MAX, "%s%s%s", directory, *directory ? "/" : "", name) < PLACE_PATH_MAX)
        return 0;
    complain("The name of the file \"%s\" is too long.", name);
    return EXIT_SELF;
}

static int set_file(const char *variable, const char *name)
{
    char path[PLACE_PATH_MAX];
    int status = make_whole(name, path);
    return status ? status : setenv(variable, path, 1) ? out_of_memory() : 0;
}

/* Programs share the file, and must not wait for a reader; so none that is gone when it has been read. */
static bool can_hold_capture(const char *path)
{
    struct stat file;
    return stat(path, &file) || S_ISREG(file.st_mode);
}

static int begin_capture(const char *name)
{
    char path[PLACE_PATH_MAX];
    if (make_whole(name, path))
        return EXIT_SELF;
    if (!strcmp(name, "-") || !can_hold_capture(path)) {
        complain("Packets can't be captured to \"%s\", which is no file. \"softverbs live FILE | wireshark -k -i -\" "
                 "shows a file while it is written.",
                 name);
        return EXIT_SELF;
    }
    int error = strstr(path, "%p") ? 0 : capture_begin(path);
    if (!error)
        return setenv("SOFTVERBS_CAPTURE", path, 1) ? out_of_memory() : 0;
    complain("Packets can't be captured to \"%s\": %s.", path,
             error == EEXIST ? "it is no capture, and stays as it is" : strerror(error));
    return EXIT_SELF;
}

static int check_faults(const struct command *command, const char *list)
{
    struct fault_plan plan;
    char why[512];
    return fault_parse(list, &plan, why, sizeof why) ? 0 : command_misused(command, "%s", why);
}

/* A name in the list that is of no interface here; an empty one leaves its device off the network. 0, or the status. */
static int check_networks(const struct command *command, const char *list)
{
    char name[IF_NAMESIZE];
    for (const char *at = list; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (length && (length >= sizeof name || !if_nametoindex(name)))
            return command_misused(command, "There is no network interface \"%.*s\".", (int)length, at);
        at += length;
    }
    return 0;
}

int prepare_option(const struct command *command, int option, const char *value)
{
    static const char *const names[] = {
        "SOFTVERBS_DEVICES",   "SOFTVERBS_LOG", NULL, "SOFTVERBS_DIR", "SOFTVERBS_NET", NULL, "SOFTVERBS_FAULT", NULL,
        "SOFTVERBS_LINK_LAYER"};
    if (option == 'q')
        return setenv("SOFTVERBS_LOG", "none", 1) ? out_of_memory() : 0;
    if (option == PREPARE_DEVICES && !is_device_count(value))
        return command_misused(command, "\"%s\" is not a number of devices from 0 to %d.", value, DEVICES_MAX);
    if (option == PREPARE_LOG && !settings_is_level(value))
        return command_misused(command, "\"%s\" is none of none, error, warn, info and debug.", value);
    if (option == PREPARE_NETWORK && check_networks(command, value))
        return EXIT_USAGE;
    if (option == PREPARE_LINK_LAYER && strcmp(value, "ib") && strcmp(value, "ethernet"))
        return command_misused(command, "\"%s\" is none of ib and ethernet.", value);
    if (option == PREPARE_CAPTURE)
        return begin_capture(value);
    if (option == PREPARE_COUNTERS)
        return set_file("SOFTVERBS_COUNTERS", value);
    if (option == PREPARE_LOG_FILE)
        return set_file("SOFTVERBS_LOG_FILE", value);
    if (option == PREPARE_FAULT && check_faults(command, value))
        return EXIT_USAGE;
    return setenv(names[option - PREPARE_DEVICES], value, 1) ? out_of_memory() : 0;
}

/* Told here, as the program would only fail to open its device. */
static bool is_others(const char *name)
{
    char directory[NODE_DIRECTORY_MAX + 1], why[512];
    if (node_directory(directory) && claim_is_others(directory, if_nametoindex(name), why, sizeof why)) {
        complain("%s: %s", name, why);
        return true;
    }
    if (share_try(name) != EADDRINUSE)
        return false;
    complain("%s: Another user or program has UDP port 4791 and does not share it. \"softverbs doctor --net %s\" says "
             "more.",
             name, name);
    return true;
}

/* 0, or the exit status. */
static int check_interfaces(const char *list)
{
    char name[IF_NAMESIZE];
    for (const char *at = list; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (length && is_others(name))
            return EXIT_SELF;
        at += length;
    }
    return 0;
}

static int check_port(const char *list)
{
    if (!start_is_fixed() || !*list)
        return check_interfaces(list);
    complain("With SOFTVERBS_SEED anybody could guess keys and queue pair numbers, so it can't be set on a network.");
    return EXIT_USAGE;
}

int prepare_environment(const struct command *command, bool paths)
{
    char why[1024];
    if (!settings_are_right(why, sizeof why))
        return command_misused(command, "%s", why);
    if (setenv("SOFTVERBS_LOG", "terminal", 0) || spare_nccl())
        return out_of_memory();
    const char *networks = getenv("SOFTVERBS_NET");
    int status = networks ? check_port(networks) : 0;
    return status ? status : provide(paths);
}
