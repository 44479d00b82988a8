#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "place.h"
#include "tap/capture.h"
#include "tap/fault.h"

bool settings_is_level(const char *level)
{
    static const char *const levels[] = {"none", "error", "warn", "info", "debug", "terminal"};
    for (unsigned i = 0; i < sizeof levels / sizeof *levels; i++)
        if (!strcmp(level, levels[i]))
            return true;
    return false;
}

/* A file that is there and can be written to, or a directory where it can be made. */
static bool is_writable(const char *setting, const char *path, char *why, size_t size)
{
    char directory[PLACE_PATH_MAX];
    struct stat status;
    if (!stat(path, &status) && S_ISDIR(status.st_mode)) {
        snprintf(why, size, "%s=%s can't be written: %s.", setting, path, strerror(EISDIR));
        return false;
    }
    snprintf(directory, sizeof directory, "%s", path);
    char *slash = strrchr(directory, '/');
    if (slash)
        slash[slash == directory] = 0;
    if (access(path, F_OK) ? !access(slash ? directory : ".", W_OK | X_OK) : !access(path, W_OK))
        return true;
    snprintf(why, size, "%s=%s can't be written: %s.", setting, path, strerror(errno));
    return false;
}

static bool can_capture(const char *path, char *why, size_t size)
{
    if (strstr(path, "%p"))
        return is_writable("SOFTVERBS_CAPTURE", path, why, size);
    struct capture *capture = capture_open(path, config_is_infiniband(), why, size);
    if (capture)
        capture_close(capture);
    return capture;
}

const char *settings_unknown(void)
{
    static const char *const names[] = {"CAPTURE", "CAPTURE_MAX", "CONFIG", "COUNTERS",   "DEVICES", "DIR",
                                        "DIRECT",  "FAULT",       "LIMITS", "LINK_LAYER", "LOG",     "LOG_FILE",
                                        "NET",     "NO_PULL",     "PATHS",  "SEED"};
    static const char prefix[] = "SOFTVERBS_";
    enum { PREFIX = sizeof prefix - 1 };
    for (char **variable = environ; *variable; variable++) {
        bool known = strncmp(*variable, prefix, PREFIX) != 0;
        const char *name = known ? "" : *variable + PREFIX;
        for (unsigned i = 0; i < sizeof names / sizeof *names && !known; i++)
            known = !strncmp(name, names[i], strlen(names[i])) && name[strlen(names[i])] == '=';
        if (!known)
            return *variable;
    }
    return NULL;
}

bool settings_are_right(char *why, size_t size)
{
    unsigned count;
    struct fault_plan plan;
    const char *level = getenv("SOFTVERBS_LOG"), *file = getenv("SOFTVERBS_LOG_FILE");
    config_devices(&count);
    const char *problem = config_problem(), *faults = config_fault(), *counters = config_counters(),
               *capture = config_capture();
    if (level && *level && !settings_is_level(level))
        snprintf(why, size, "SOFTVERBS_LOG=%s is none of none, error, warn, info and debug.", level);
    else if (problem)
        snprintf(why, size, "%s", problem);
    else if (!(faults && *faults && !fault_parse(faults, &plan, why, size)) &&
             !(file && *file && !is_writable("SOFTVERBS_LOG_FILE", file, why, size)) &&
             !(counters && *counters && !is_writable("SOFTVERBS_COUNTERS", counters, why, size)) &&
             !(capture && *capture && !can_capture(capture, why, size)))
        return true;
    return false;
}
