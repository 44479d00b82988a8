#include "check/outside/loaded.h"

#include <string.h>

static bool begins_with(const char *text, const char *beginning)
{
    return !strncmp(text, beginning, strlen(beginning));
}

/* The C library, its loader and sanitizers free what is theirs, and libraries that show lines run under the checker's
 * locks. */
static bool is_left_alone(const char *path, const char *except)
{
    static const char *const names[] = {"libc.so",       "ld-linux",   "ld-musl", "libdw",   "libelf",
                                        "libdebuginfod", "linux-vdso", "libasan", "libtsan", "liblsan"};
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        if (begins_with(base, names[at]))
            return true;
    return except && begins_with(base, except);
}

/* The arguments of loaded_replace while it runs. */
static struct replacing {
    const struct imports_entry *entries;
    loaded_original *originals;
    unsigned count;
    const char *except;
} replacing;

static void lead_here(struct imports_object *object, unsigned which, imports_function **entry)
{
    if (imports_is_inside(object, replacing.originals[which])) {
        if (imports_is_inside(object, *entry))
            return;
        replacing.originals[which] = *entry;
    }
    imports_store(object, entry, replacing.entries[which].replacement);
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *context)
{
    struct imports_object object;
    if (is_left_alone(info->dlpi_name, replacing.except))
        return 0;
    imports_read(&object, info);
    if (!imports_is_inside(&object, (imports_function *)loaded_replace))
        imports_visit(&object, replacing.entries, replacing.count, lead_here);
    return 0;
}

void loaded_replace(const struct imports_entry *entries, loaded_original *originals, unsigned count, const char *except)
{
    replacing = (struct replacing){entries, originals, count, except};
    dl_iterate_phdr(visit_object, NULL);
}
