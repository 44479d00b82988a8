#include "prepare.h"

#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adverse/plan.h"
#include "base/random.h"
#include "base/text/text.h"
#include "check/rule.h"
#include "config/config.h"
#include "ipc/ask/claim.h"
#include "ipc/node.h"
#include "pci/pci.h"
#include "place.h"
#include "print/screen.h"
#include "profile/profile.h"
#include "record/recorder.h"
#include "script/rule.h"
#include "settings.h"
#include "share.h"
#include "tap/capture.h"
#include "tap/fault.h"
#include "tree.h"

static int out_of_memory(void)
{
    return complain_and(EXIT_SELF, "There is not enough memory to prepare the program's environment.");
}

/* Puts `item` at the front of a list in the environment, unless it is there already (run inside run). */
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

/* Puts `item` at the end of a list in the environment, unless it is there already. */
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

/* Accesses that threads of our library order by atomic operations look like races to ThreadSanitizer, as the library is
 * not instrumented: it sees the copies but not the order. It still reports the program's own races. The user's value
 * follows, and so prevails. */
static int calm_thread_sanitizer(void)
{
    return prepend("TSAN_OPTIONS", "ignore_noninstrumented_modules=1");
}

/* Sets variables of other programs that the user has not set. */
static int set_foreign(void)
{
    int error = 0;
#define FOREIGN(variable, value, meaning) error |= setenv(#variable, value, 0);
#include "base/settings.def"
    return error;
}

/* The linker takes colons and semicolons in LD_LIBRARY_PATH, and blanks in LD_PRELOAD, for separators, and knows no
 * escape; a preloaded library may also be named without its directory, and is then found in LD_LIBRARY_PATH. */
static int set_library_path(const char *directory)
{
    if (strpbrk(directory, ":;"))
        return complain_and(
            EXIT_SELF, "The libraries are in \"%s\"; the dynamic linker can't use a path with a colon or semicolon.",
            directory);
    return prepend("LD_LIBRARY_PATH", directory) || calm_thread_sanitizer() ? out_of_memory() : 0;
}

static void name_preloaded(const char *directory, const char *name, char path[PLACE_PATH_MAX + 32])
{
    bool whole = !strpbrk(directory, " \t\n");
    snprintf(path, PLACE_PATH_MAX + 32, "%s%s%s", whole ? directory : "", whole ? "/" : "", name);
}

/* The directory of libmlx5 is searched only for a device that has its calls: for others the distribution's library says
 * that they are not its own. */
static int set_vendor_path(const char *directory)
{
    char vendor[PLACE_PATH_MAX + 8];
    if (!profile_is_mlx5(setting_profile()))
        return 0;
    snprintf(vendor, sizeof vendor, "%s/mlx5", directory);
    if (profile_has_queues(setting_profile()) && setenv("UCX_IB_INDIRECT_ATOMIC", "n", 0))
        return out_of_memory(); /* without DevX UCX gives its peers wrong keys for atomics otherwise */
    return prepend("LD_LIBRARY_PATH", vendor) ? out_of_memory() : 0;
}

/* AddressSanitizer refuses to start after a preloaded library without this option; these libraries do it no harm. */
int prepare_preload(const char *path)
{
    bool done = !prepend("LD_PRELOAD", path) && !prepend("ASAN_OPTIONS", "verify_asan_link_order=0");
    return done ? 0 : out_of_memory();
}

/* The library of paths is first, so that all others see its paths. The verbs are preloaded for programs and libraries
 * that look in a DT_RPATH before LD_LIBRARY_PATH: the name that they look for is loaded already. The verbs are last, so
 * that a library of the user still precedes them. */
static int preload(const char *directory)
{
    char paths[PLACE_PATH_MAX + 32], verbs[PLACE_PATH_MAX + 32];
    name_preloaded(directory, "libsoftverbs-paths.so", paths);
    name_preloaded(directory, "libibverbs.so.1", verbs);
    return append("LD_PRELOAD", verbs) ? out_of_memory() : prepare_preload(paths);
}

/* rdma(8) asks the kernel over netlink; ours precedes it. Without $PATH the shell's default stays in force. */
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
    if (tree_make(devices, count, path, why, sizeof why))
        return complain_and(EXIT_SELF, "%s \"softverbs run --no-paths\" does without them.", why);
    if (setenv(setting_lines[SETTING_PATHS].variable, path, 1))
        return out_of_memory();
    int status = provide_programs(directory);
    return status ? status : preload(directory);
}

/* Opens the directory where processes meet: the program would only get an error of ibv_open_device, no sentence. */
static int meet(void)
{
    struct node *node;
    char why[512];
    if (node_open(&node, NULL, why, sizeof why))
        return complain_and(EXIT_SELF, "%s", why);
    node_close(node);
    return 0;
}

static int provide(bool paths)
{
    char directory[PLACE_PATH_MAX], why[512];
    if (place_libraries(directory, why, sizeof why))
        return complain_and(EXIT_SELF, "%s", why);
    int status = set_library_path(directory);
    if (!status)
        status = set_vendor_path(directory);
    if (!status && paths)
        status = provide_paths(directory);
    return status ? status : meet();
}

/* Writes a whole path: the program may change its directory, and all programs that it starts write to the same file. */
static int make_whole(const char *name, char path[PLACE_PATH_MAX])
{
    char directory[PLACE_PATH_MAX] = "";
    if (*name != '/' && !getcwd(directory, sizeof directory))
        *directory = 0;
    if (snprintf(path, PLACE_PATH_MAX, "%s%s%s", directory, *directory ? "/" : "", name) < PLACE_PATH_MAX)
        return 0;
    return complain_and(EXIT_SELF, "The name of the file \"%s\" is too long.", name);
}

/* -- options: the value of each type of setting, as the environment gets it */

static int set_text(const struct command *command, enum setting setting, const char *text)
{
    char why[160];
    if (!setting_check(setting, text, why, sizeof why))
        return command_misused(command, "--%s \"%s\": %s.", setting_lines[setting].option, text, why);
    return setenv(setting_lines[setting].variable, text, 1) ? out_of_memory() : 0;
}

static int set_file(const struct command *command, enum setting setting, const char *name)
{
    char path[PLACE_PATH_MAX];
    int status = make_whole(name, path);
    return status ? status : set_text(command, setting, path);
}

/* Programs share the file, and must not wait for a reader; so it is a regular file, or does not exist yet. */
static bool can_hold_capture(const char *path)
{
    struct stat file;
    return stat(path, &file) || S_ISREG(file.st_mode);
}

static int begin_capture(const struct command *command, enum setting setting, const char *name)
{
    char path[PLACE_PATH_MAX];
    if (make_whole(name, path))
        return EXIT_SELF;
    if (!strcmp(name, "-") || !can_hold_capture(path))
        return complain_and(
            EXIT_SELF,
            "Packets can't be captured to \"%s\", which is not a file. \"softverbs live FILE | wireshark -k -i -\" "
            "shows a file while it is written.",
            name);
    int error = strstr(path, "%p") ? 0 : capture_begin(path);
    if (!error)
        return set_text(command, setting, path);
    return complain_and(EXIT_SELF, "Packets can't be captured to \"%s\": %s.", path,
                        error == EEXIST ? "it is not a capture, and stays as it is" : strerror(error));
}

static int begin_recording(const struct command *command, enum setting setting, const char *name)
{
    char path[PLACE_PATH_MAX];
    if (make_whole(name, path))
        return EXIT_SELF;
    int error = recorder_empty(path);
    if (!error)
        return set_text(command, setting, path);
    return complain_and(EXIT_SELF, "Nothing can be recorded to \"%s\": %s.", path,
                        error == EEXIST ? "it is not a recording, and stays as it is" : strerror(error));
}

static int set_faults(const struct command *command, enum setting setting, const char *list)
{
    static struct script script;
    char why[512];
    script.count = 0;
    if (!fault_parse(list, &script, why, sizeof why))
        return command_misused(command, "%s", why);
    return set_text(command, setting, list);
}

/* An empty name in the list leaves its device off the network. */
static int set_networks(const struct command *command, enum setting setting, const char *list)
{
    char name[IF_NAMESIZE];
    const char *rest = list;
    for (struct text_part part; text_next(&rest, ",", &part);) {
        snprintf(name, sizeof name, "%.*s", (int)part.length, part.at);
        if (part.length && (part.length >= sizeof name || !if_nametoindex(name)))
            return command_misused(command, "There is no network interface \"%.*s\".", (int)part.length, part.at);
    }
    return set_text(command, setting, list);
}

static int set_readable(const struct command *command, enum setting setting, const char *name)
{
    char path[PLACE_PATH_MAX];
    int status = make_whole(name, path);
    if (!status && access(path, R_OK))
        return command_misused(command, "\"%s\" can't be read: %s", path, strerror(errno));
    return status ? status : set_text(command, setting, path);
}

/* Writes the names of the profiles in this directory, "rxe, siw". */
static void list_profiles(const char *directory, char *names, size_t size)
{
    struct dirent **entries;
    size_t used = 0;
    int count = scandir(directory, &entries, NULL, alphasort);
    *names = 0;
    for (int i = 0; i < count; i++) {
        const char *end = strstr(entries[i]->d_name, PROFILE_END);
        if (end && used < size)
            used += (size_t)snprintf(names + used, size - used, "%s%.*s", used ? ", " : "",
                                     (int)(end - entries[i]->d_name), entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

/* A name without a slash is an installed profile's. Words behind a comma stay behind the path. */
static int find_profile(const struct command *command, const char *name, char path[PLACE_PATH_MAX])
{
    char directory[PLACE_PATH_MAX], names[1024];
    int letters = (int)strcspn(name, ",");
    if (memchr(name, '/', (size_t)letters))
        return make_whole(name, path);
    if (!place_profiles(directory))
        return complain_and(
            EXIT_SELF,
            "The profiles that belong to this command are not where they should be. Build or install softverbs again.");
    int length = snprintf(path, PLACE_PATH_MAX, "%s/%.*s" PROFILE_END, directory, letters, name);
    if (length < PLACE_PATH_MAX && !access(path, F_OK)) {
        snprintf(path + length, PLACE_PATH_MAX - (size_t)length, "%s", name + letters);
        return 0;
    }
    list_profiles(directory, names, sizeof names);
    return command_misused(command,
                           "There is no profile \"%.*s\". There are %s; a file of your own has a slash in its path, "
                           "as in ./%.*s" PROFILE_END ".",
                           letters, name, names, letters, name);
}

static int set_profile(const struct command *command, enum setting setting, const char *name)
{
    static struct profile profile;
    char path[PLACE_PATH_MAX], why[512];
    int status = find_profile(command, name, path);
    if (status)
        return status;
    if (!profile_read(path, &profile, why, sizeof why))
        return command_misused(command, "%s", why);
    return set_text(command, setting, path);
}

static int set_adverse(const struct command *command, enum setting setting, const char *list)
{
    struct adverse_plan plan;
    char why[768];
    if (list && !adverse_parse(list, &plan, why, sizeof why))
        return command_misused(command, "%s", why);
    return set_text(command, setting, list && *list ? list : "seed=1");
}

static int set_schedule(const struct command *command, enum setting setting, const char *text)
{
    uint64_t seed;
    char why[128];
    if (!adverse_parse_schedule(text, &seed, why, sizeof why))
        return command_misused(command, "%s", why);
    return set_text(command, setting, text);
}

/* Each further --pci continues the list. */
static int add_function(const struct command *command, enum setting setting, const char *item)
{
    static struct pci_layout layout;
    static char list[PCI_LIST_MAX];
    char why[512];
    size_t used = strlen(list);
    if (!item[strspn(item, ",")])
        return command_misused(command, "--pci \"%s\" names no function; \"none\" leaves the device without one.",
                               item);
    int length = snprintf(list + used, sizeof list - used, "%s%s", used ? "," : "", item);
    if (length < 0 || (size_t)length >= sizeof list - used)
        return command_misused(command, "--pci: The list has more than %d letters.", PCI_LIST_MAX - 1);
    if (!pci_parse(list, &layout, why, sizeof why))
        return command_misused(command, "--pci: %s.", why);
    return set_text(command, setting, list);
}

/* The default list is errors, adapter findings and failed work. */
static int set_checks(const struct command *command, enum setting setting, const char *list)
{
    struct rule_choice choice;
    char why[256];
    if (list && !rule_choose(list, &choice, why, sizeof why))
        return command_misused(command, "--check: %s", why);
    return set_text(command, setting, list && *list ? list : "adapter");
}

/* An empty value in the environment takes back what the configuration says. An empty value of an option is most often a
 * shell's variable that was never set, and the program would run without what was asked for. */
static int refuse_empty(const struct command *command, enum setting setting)
{
    const struct setting_line *line = &setting_lines[setting];
    return command_misused(command, "The value of --%s is empty. Leave the option out, or name its %s.", line->option,
                           line->value);
}

int prepare_option(const struct command *command, int option, const char *value)
{
    static int (*const by_type[SETTING_TYPES])(const struct command *, enum setting, const char *) = {
        [SETTING_TYPE_FILE] = set_file,
        [SETTING_TYPE_CAPTURE] = begin_capture,
        [SETTING_TYPE_RECORDING] = begin_recording,
        [SETTING_TYPE_INTERFACES] = set_networks,
        [SETTING_TYPE_FAULTS] = set_faults,
        [SETTING_TYPE_READ] = set_readable,
        [SETTING_TYPE_CHECKS] = set_checks,
        [SETTING_TYPE_SCRIPT] = set_file,
        [SETTING_TYPE_PROFILE] = set_profile,
        [SETTING_TYPE_BEHAVIOURS] = set_adverse,
        [SETTING_TYPE_SCHEDULE] = set_schedule,
        [SETTING_TYPE_PCI] = add_function,
    };
    if (option == 'q')
        return set_text(command, SETTING_LOG, "none");
    enum setting setting = (enum setting)(option - PREPARE_SETTINGS);
    enum setting_type type = setting_lines[setting].type;
    if (value && !*value && *setting_lines[setting].value != '[')
        return refuse_empty(command, setting);
    return (by_type[type] ? by_type[type] : set_text)(command, setting, value);
}

const struct option *prepare_options(const struct option *own)
{
    static struct option all[SETTINGS + 16];
    static const struct option common[] = {OPTION("quiet", 'q'), OPTION("no-paths", PREPARE_NO_PATHS),
                                           OPTION("help", 'h')};
    size_t count = 0;
    for (; own && own->name; own++)
        all[count++] = *own;
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        all[count++] = common[i];
    for (enum setting i = 0; i < SETTINGS; i++) {
        bool optional = *setting_lines[i].value == '[';
        int value = optional ? optional_argument : required_argument;
        if (*setting_lines[i].option)
            all[count++] = (struct option){setting_lines[i].option, value, NULL, PREPARE_SETTINGS + (int)i};
    }
    all[count] = (struct option){0};
    return all;
}

/* Writes an option's words of help, with a list of faults in place of @FAULTS@, and its variable. */
static void expand(const struct setting_line *line, char *text, size_t size)
{
    const char *at = strstr(line->help, "@FAULTS@"), *end = line->help + strlen(line->help);
    snprintf(text, size, "%.*s%s%s (%s=%s)", (int)((at ? at : end) - line->help), line->help, at ? fault_example : "",
             at ? at + strlen("@FAULTS@") : "", line->variable, *line->value == '[' ? "LIST" : line->value);
}

void prepare_print_help(FILE *to)
{
    enum { COLUMN = 20, WIDTH = 79 };
    char head[64], text[512];
    for (const struct setting_line *line = setting_lines; line < setting_lines + SETTINGS; line++) {
        if (!*line->option)
            continue;
        snprintf(head, sizeof head, "  --%s%s%s", line->option, *line->value == '[' ? "" : " ", line->value);
        expand(line, text, sizeof text);
        int used = fprintf(to, "%-*s", COLUMN - 2, head);
        screen_wrap(to, WIDTH, (size_t)fprintf(to, "  ") + (size_t)used, COLUMN, text);
    }
}

/* Returns whether another user or program has the port; the program itself would only fail to open its device. */
static bool is_others(const char *name)
{
    char directory[NODE_DIRECTORY_MAX + 1], why[512];
    if (node_directory(directory) && claim_is_others(directory, if_nametoindex(name), why, sizeof why))
        return complain_and(true, "%s: %s", name, why);
    if (share_try(name) != EADDRINUSE)
        return false;
    return complain_and(
        true,
        "%s: Another user or program has UDP port 4791 and does not share it. \"softverbs doctor --net %s\" says "
        "more.",
        name, name);
}

/* 0, or the exit status. */
static int check_interfaces(const char *list)
{
    char name[IF_NAMESIZE];
    for (struct text_part part; text_next(&list, ",", &part);) {
        snprintf(name, sizeof name, "%.*s", (int)part.length, part.at);
        if (part.length && is_others(name))
            return EXIT_SELF;
    }
    return 0;
}

static int check_port(const char *list)
{
    if (!random_is_fixed() || !*list)
        return check_interfaces(list);
    return complain_and(
        EXIT_USAGE,
        "With SOFTVERBS_SEED anybody could guess keys and queue pair numbers, so it can't be set on a network.");
}

/* Returns whether this is a job of continuous integration, whose log is read after its end, and not at a terminal. */
static bool is_in_ci(void)
{
    static const char *const variables[] = {"CI", "GITHUB_ACTIONS", "GITLAB_CI"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value && strcmp(value, "0") && strcasecmp(value, "false"))
            return true;
    }
    return false;
}

int prepare_environment(const struct command *command, bool paths)
{
    char why[1024];
    if (!settings_are_right(why, sizeof why))
        return command_misused(command, "%s", why);
    /* Without a level of the user, a program's mistakes are shown to a person at a terminal, and in the log of a job.
     */
    if (setenv(setting_lines[SETTING_LOG].variable, is_in_ci() ? "warn" : "terminal", 0) || set_foreign())
        return out_of_memory();
    const char *networks = setting_text(SETTING_NET);
    int status = networks ? check_port(networks) : 0;
    return status ? status : provide(paths);
}
