#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "config/settings.h"
#include "place.h"
#include "tap/capture.h"
#include "tap/fault.h"

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
        return is_writable(setting_lines[SETTING_CAPTURE].variable, path, why, size);
    struct capture *capture = capture_open(path, config_is_infiniband(), why, size);
    if (capture)
        capture_close(capture);
    return capture;
}

static bool is_known(const char *entry)
{
    for (enum setting i = 0; i < SETTINGS; i++) {
        size_t length = strlen(setting_lines[i].variable);
        if (!strncmp(entry, setting_lines[i].variable, length) && entry[length] == '=')
            return true;
    }
    return false;
}

const char *settings_unknown(void)
{
    for (char **entry = environ; *entry; entry++)
        if (!strncmp(*entry, "SOFTVERBS_", 10) && !is_known(*entry))
            return *entry;
    return NULL;
}

/* What a value of this setting needs beyond what its reader looks at. */
static bool can_be_used(enum setting setting, const char *text, char *why, size_t size)
{
    struct fault_plan plan;
    switch (setting_lines[setting].type) {
    case SETTING_TYPE_FAULTS:
        return fault_parse(text, &plan, why, size);
    case SETTING_TYPE_FILE:
        return is_writable(setting_lines[setting].variable, text, why, size);
    case SETTING_TYPE_CAPTURE:
        return can_capture(text, why, size);
    default:
        return true;
    }
}

bool settings_are_right(char *why, size_t size)
{
    unsigned count;
    config_devices(&count);
    const char *problem = config_problem();
    if (problem) {
        snprintf(why, size, "%s", problem);
        return false;
    }
    for (enum setting i = 0; i < SETTINGS; i++) {
        const char *text = setting_text(i);
        if (text && *text && !can_be_used(i, text, why, size))
            return false;
    }
    return true;
}
