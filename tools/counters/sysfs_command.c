/* softverbs sysfs: a tree of plain files, laid out as /sys, with the counters of the live processes. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "config/config.h"
#include "counters/port.h"
#include "facts/seen.h"
#include "report/meeting.h"
#include "report/reports.h"
#include "tree.h"

struct keeper {
    struct meeting meeting;
    int root;
    const char *device; /* whose files are written */
    int error;
    json_t *living; /* of each process, by its number, the counts that it said last */
    json_t *ended;  /* counts by device of processes that have ended since the beginning */
};

static volatile sig_atomic_t interrupted;

static void note_signal(int number)
{
    interrupted = number;
}

/* --- the counts of processes that have ended stay, as in a kernel */

/* Adds the counts of a process by device to the sums by device. */
static void add_devices(json_t *to, const json_t *devices)
{
    const json_t *traffic;
    size_t i;
    json_array_foreach ((json_t *)devices, i, traffic) {
        const char *device = port_device(traffic);
        json_t *there = json_object_get(to, device);
        if (!there)
            json_object_set_new(to, device, there = json_object());
        port_add(there, traffic);
    }
}

/* Keeps the counts that each process said; of a process that does not answer now, the last ones. */
static void remember(struct keeper *keeper, const struct seen *now)
{
    const char *pid;
    json_t *devices;
    void *next;
    json_object_foreach_safe (keeper->living, next, pid, devices)
        if (!seen_find(now, strtoull(pid, NULL, 10))) {
            add_devices(keeper->ended, devices);
            json_object_del(keeper->living, pid);
        }
    for (size_t i = 0; i < now->count; i++) {
        const struct facts_process *process = &now->processes[i].own;
        char number[24];
        snprintf(number, sizeof number, "%" PRIu64, process->pid.value);
        if (process->traffic.of)
            json_object_set(keeper->living, number, (json_t *)facts_json(&process->traffic));
    }
}

/* --- files */

/* Writes the file under another name first, so that a reader never finds half a number. */
static int replace_file(int root, const char *path, const char *text)
{
    char draft[300];
    snprintf(draft, sizeof draft, "%s.new", path);
    int fd = openat(root, draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return errno;
    ssize_t length = (ssize_t)strlen(text);
    int error = write(fd, text, (size_t)length) == length ? 0 : errno ? errno : ENOSPC;
    close(fd);
    return error ? error : renameat(root, draft, root, path) ? errno : 0;
}

static void write_counter(void *context, bool hardware, const char *name, uint64_t value)
{
    struct keeper *keeper = context;
    char path[256], text[32];
    snprintf(path, sizeof path, "class/infiniband/%s/ports/1/%s/%s", keeper->device,
             hardware ? "hw_counters" : "counters", name);
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)value);
    if (!keeper->error)
        keeper->error = replace_file(keeper->root, path, text);
}

static void write_counters(struct keeper *keeper)
{
    const char *pid;
    json_t *of_process, *all = json_deep_copy(keeper->ended);
    json_object_foreach (keeper->living, pid, of_process)
        add_devices(all, of_process);
    CONFIG_EACH (device) {
        keeper->device = device->name;
        port_describe(json_object_get(all, device->name), write_counter, keeper);
    }
    json_decref(all);
}

/* 0, or an exit status after a message. */
static int refresh(struct keeper *keeper)
{
    char why[512];
    json_t *now = reports_collect(keeper->meeting.directory, why, sizeof why);
    if (!now)
        return complain_and(EXIT_NEGATIVE, "%s", why);
    struct seen seen = seen_begin(now);
    remember(keeper, &seen);
    seen_end(&seen);
    json_decref(now);
    write_counters(keeper);
    if (keeper->error)
        complain("The counters can't be written: %s.", strerror(keeper->error));
    return keeper->error ? EXIT_NEGATIVE : EXIT_OK;
}

/* --- the command */

/* 0, or an exit status after a message. */
static int make_tree(struct keeper *keeper, const char *directory)
{
    unsigned count;
    const struct device *devices = config_devices(&count);
    int error = mkdir(directory, 0755) && errno != EEXIST ? errno : tree_write(directory, devices, count);
    keeper->root = error ? -1 : open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (keeper->root >= 0)
        return EXIT_OK;
    return complain_and(EXIT_NEGATIVE, "The tree can't be made in \"%s\": %s.", directory,
                        strerror(error ? error : errno));
}

static int keep(struct keeper *keeper, bool once)
{
    struct timespec second = {.tv_sec = 1};
    struct sigaction action = {.sa_handler = note_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int status = refresh(keeper);
    while (!status && !once && !interrupted) {
        nanosleep(&second, NULL);
        if (!interrupted)
            status = refresh(keeper);
    }
    return status;
}

static int run_sysfs(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {OPTION("once", 'o'), MEETING_OPTIONS};
    struct keeper keeper = {.root = -1, .living = json_object(), .ended = json_object()};
    bool once = false;
    int status = EXIT_OK;
    for (int option; (option = meeting_option(command, argc, argv, options, &keeper.meeting)) != -1;)
        once |= option == 'o';
    if (keeper.meeting.as_json)
        status = command_misused(command, "It prints nothing.");
    else if (optind + 1 != argc)
        status = command_misused(command, "It needs one directory.");
    if (!status)
        status = meeting_find(command, &keeper.meeting);
    if (!status)
        status = make_tree(&keeper, argv[optind]);
    if (!status)
        status = keep(&keeper, once);
    if (keeper.root >= 0)
        close(keeper.root);
    json_decref(keeper.living);
    json_decref(keeper.ended);
    return status;
}

const struct command sysfs_command = {
    .name = "sysfs",
    .arguments = "[--once] [--dir DIR] TREE",
    .summary = "Keep a tree of files like /sys with counters of the live processes",
    .help = "  --once            write the counters once, and end\n" MEETING_HELP_DIR "\n"
            "It makes the directory TREE with class/infiniband and its files, as a kernel\n"
            "with these devices would have it in /sys, and writes the counters anew once a\n"
            "second until it is ended (Ctrl-C). It is for programs that make their own system\n"
            "calls, and so do not see the files of softverbs run:\n"
            "\n"
            "  softverbs sysfs /tmp/sys &\n"
            "  prometheus-node-exporter --path.sysfs=/tmp/sys\n"
            "\n"
            "A counter is the sum over all processes, also over those that ended while the\n"
            "command ran. The tree stays when the command ends.\n",
    .run = run_sysfs,
};
