#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adverse/plan.h"
#include "base/text/suggest.h"
#include "base/text/text.h"
#include "check/rule.h"
#include "config/config.h"
#include "config/settings.h"
#include "pci/pci.h"
#include "place.h"
#include "profile/profile.h"
#include "script/script.h"
#include "tap/capture.h"
#include "tap/fault.h"

/* Returns whether the file is there and can be written to, or can be made in its directory. */
static bool is_writable(const char *setting, const char *path, char *why, size_t size)
{
    char directory[PLACE_PATH_MAX];
    struct stat status;
    if (!stat(path, &status) && S_ISDIR(status.st_mode))
        return SAY_AND(false, why, size, "%s=%s can't be written: %s.", setting, path, strerror(EISDIR));
    snprintf(directory, sizeof directory, "%s", path);
    char *slash = strrchr(directory, '/');
    if (slash)
        slash[slash == directory] = 0;
    if (access(path, F_OK) ? !access(slash ? directory : ".", W_OK | X_OK) : !access(path, W_OK))
        return true;
    return SAY_AND(false, why, size, "%s=%s can't be written: %s.", setting, path, strerror(errno));
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

bool settings_is_one(const char *entry)
{
    for (enum setting i = 0; i < SETTINGS; i++) {
        size_t length = strlen(setting_lines[i].variable);
        if (!strncmp(entry, setting_lines[i].variable, length) && entry[length] == '=')
            return true;
    }
    return false;
}

static bool is_reserved(const char *entry)
{
    static const char around[] = "SOFTVERBS_AROUND_"; /* of the library in front of another libibverbs */
    if (!strncmp(entry, around, sizeof around - 1))
        return true;
    static const char *const names[] = {
#define RESERVED(variable) "SOFTVERBS_" #variable "=",
#include "base/settings.def"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(entry, names[i], strlen(names[i])))
            return true;
    return false;
}

/* Returns whether a variable's name begins like a setting's, and is neither a setting's nor reserved. */
static bool is_unknown(const char *entry)
{
    return !strncmp(entry, "SOFTVERBS_", 10) && !settings_is_one(entry) && !is_reserved(entry);
}

const char *settings_unknown(void)
{
    for (char **entry = environ; *entry; entry++)
        if (is_unknown(*entry))
            return *entry;
    return NULL;
}

/* The setting whose name differs from this one by a slip: one letter, in long names two; NULL: no such setting. */
static const char *find_meant(const char *name)
{
    enum { LONG = sizeof "SOFTVERBS_LIMITS" - 1 };
    for (enum setting i = 0; i < SETTINGS; i++)
        if (suggest_distance(name, setting_lines[i].variable) <= (strlen(setting_lines[i].variable) < LONG ? 1 : 2))
            return setting_lines[i].variable;
    return NULL;
}

/* A setting with a slip in its name would be ignored in silence: a program that is to meet faults meets no fault. */
static bool has_slip(char *why, size_t size)
{
    char name[64];
    for (char **entry = environ; *entry; entry++) {
        if (!is_unknown(*entry))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*entry, "="), *entry);
        const char *meant = find_meant(name);
        if (meant)
            return SAY_AND(true, why, size, "%s is not a setting; %s is one.", name, meant);
    }
    return false;
}

static bool is_script(bool (*read)(const char *, struct script *, char *, size_t), const char *text, char *why,
                      size_t size)
{
    static struct script script;
    script.count = 0;
    return read(text, &script, why, size);
}

/* A layout in a profile may have functions for more devices than there are (`all` is false). */
static bool is_layout(const char *text, bool all, char *why, size_t size)
{
    static struct pci_layout layout;
    unsigned count;
    config_devices(&count);
    return pci_parse(text, &layout, why, size) && pci_fits(&layout, all ? count : DEVICES_MAX, why, size);
}

/* Checks this setting's value further than its reader does. */
static bool can_be_used(enum setting setting, const char *text, char *why, size_t size)
{
    struct adverse_plan adverse;
    uint64_t seed;
    struct rule_choice choice;
    switch (setting_lines[setting].type) {
    case SETTING_TYPE_FAULTS:
        return is_script(fault_parse, text, why, size);
    case SETTING_TYPE_BEHAVIOURS:
        return adverse_parse(text, &adverse, why, size);
    case SETTING_TYPE_SCHEDULE:
        return adverse_parse_schedule(text, &seed, why, size);
    case SETTING_TYPE_CHECKS:
        return rule_choose(text, &choice, why, size);
    case SETTING_TYPE_FILE:
    case SETTING_TYPE_RECORDING:
        return is_writable(setting_lines[setting].variable, text, why, size);
    case SETTING_TYPE_CAPTURE:
        return can_capture(text, why, size);
    case SETTING_TYPE_SCRIPT:
        return is_script(script_read_file, text, why, size);
    case SETTING_TYPE_PCI:
        return is_layout(text, true, why, size);
    case SETTING_TYPE_RULES:
        return is_script(script_read_text, text, why, size);
    default:
        return true;
    }
}

bool settings_are_right(char *why, size_t size)
{
    const char *problem = config_problem();
    if (problem)
        return SAY_AND(false, why, size, "%s", problem);
    if (has_slip(why, size))
        return false;
    for (enum setting i = 0; i < SETTINGS; i++) {
        const char *text = setting_text(i);
        if (text && *text && !can_be_used(i, text, why, size))
            return false;
    }
    const struct profile *profile = setting_profile();
    return !profile || setting_text(SETTING_PCI) || is_layout(profile->pci, false, why, size);
}
