/* softverbs report: what others need to see of this machine and its processes, in one file for a bug report. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "config/settings.h"
#include "meeting.h"
#include "place.h"
#include "print/emit.h"
#include "redact.h"
#include "settings.h"

/* The JSON that softverbs prints with these arguments; JSON's null if it prints no JSON. */
static json_t *ask(char *const *arguments)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return json_null();
    pid_t child = fork();
    if (!child) {
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(nothing, STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        dup2(nothing, STDERR_FILENO);
        place_execute(arguments);
        _exit(127);
    }
    close(ends[1]);
    json_t *said = child > 0 ? json_loadfd(ends[0], 0, NULL) : NULL;
    close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return said ? said : json_null();
}

#define ASK(...) ask((char *const[]){"softverbs", __VA_ARGS__, "--json", NULL})

/* The settings of softverbs in the environment. A seed's text is the user's own, and left out. */
static json_t *settings(void)
{
    json_t *object = json_object();
    for (char **entry = environ; *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        if (!settings_is_one(*entry) || !(*entry)[length])
            continue;
        bool seed = !strncmp(*entry, setting_lines[SETTING_SEED].variable, length);
        char *name = strndup(*entry, length);
        if (name)
            json_object_set_new(object, name, emit_text(seed ? "(left out)" : *entry + length + 1));
        free(name);
    }
    return object;
}

static json_t *distribution(void)
{
    char line[256];
    json_t *name = json_null();
    FILE *file = fopen("/etc/os-release", "re");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "PRETTY_NAME=", 12)) {
            line[strcspn(line, "\n")] = 0;
            name = emit_text(line + 12);
            break;
        }
    if (file)
        fclose(file);
    return name;
}

static json_t *machine(void)
{
    struct utsname names;
    if (uname(&names))
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:i}", "kernel", emit_text(names.release), "architecture",
                     emit_text(names.machine), "distribution", distribution(), "processors",
                     (int)sysconf(_SC_NPROCESSORS_ONLN));
}

static json_t *collect(char *capture)
{
    char made[40];
    time_t now = time(NULL);
    strftime(made, sizeof made, "%Y-%m-%dT%H:%M:%S%z", localtime(&now));
    json_t *all = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "made", made, "version", ASK("version"),
                            "machine", machine(), "settings", settings(), "doctor", ASK("doctor"), "show", ASK("show"),
                            "stat", ASK("stat", "--once"), "why", ASK("why"), "last", ASK("why", "--last"));
    if (capture)
        json_object_set_new(all, "packets", ASK("decode", capture));
    redact(all);
    return all;
}

/* Writes a file that this user alone can read, and never over another file. */
static int write_to(const char *path, json_t *all)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), error = fd < 0 ? errno : 0;
    if (!error && json_dumpfd(all, fd, JSON_INDENT(2)))
        error = errno ? errno : EIO;
    if (fd >= 0 && close(fd) && !error)
        error = errno;
    if (error)
        return complain_and(EXIT_NEGATIVE, "\"%s\" can't be written: %s.", path, strerror(error));
    printf("%s has the report. Look through it before you give it away: docs/how-to/report.md says what is left out.\n",
           path);
    return EXIT_OK;
}

static int report(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {VALUED("capture", 'c'), VALUED("output", 'o'), MEETING_OPTIONS};
    struct meeting meeting = {0};
    const char *path = "softverbs-report.json";
    char *capture = NULL;
    int option;
    while ((option = meeting_option(command, argc, argv, options, &meeting)) != -1)
        if (option == 'c')
            capture = optarg;
        else
            path = optarg;
    if (optind < argc)
        return command_misused(command, "It takes no argument \"%s\".", argv[optind]);
    int status = meeting_find(command, &meeting);
    if (!status && capture && access(capture, R_OK)) {
        complain("\"%s\" can't be read: %s.", capture, strerror(errno));
        status = EXIT_NEGATIVE;
    }
    if (status)
        return status;
    json_t *all = collect(capture);
    if (meeting.as_json)
        emit(json_incref(all));
    else
        status = write_to(path, all);
    json_decref(all);
    return status;
}

const struct command report_command = {
    .name = "report",
    .arguments = "[--output FILE] [--capture FILE] [--json] [--dir DIR]",
    .summary = "Write what a bug report needs into one file",
    .help = "  --output FILE     write this new file instead of softverbs-report.json\n"
            "  --capture FILE    add the packets of this capture, without their payload\n"
            "  --json            print the report on standard output instead\n"
            "                    (docs/reference/json.md)\n" MEETING_HELP_DIR "\n"
            "The report has the version, this machine's kernel and distribution, the settings\n"
            "of softverbs, the output of \"softverbs doctor\", \"show\", \"stat\" and \"why\", and\n"
            "the last lines of each process. Names of the user and the host, the home\n"
            "directory and network addresses are replaced, and memory addresses, keys and\n"
            "payload are left out: docs/how-to/report.md has the list.\n"
            "\n"
            "Exit status: 0, or 1 when the file can't be written or the capture not be read.\n",
    .letters = "o:",
    .run = report,
};
