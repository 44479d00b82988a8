#include "diag/kept_story.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/settings.h"
#include "base/uncancelled.h"
#include "diag/last_lines.h"
#include "diag/log.h"
#include "diag/shared_file.h"

/* All paths are written before the process has a queue pair, and by the child of a fork before it makes one. */
static char path[PATH_MAX / 16];
static char directory[PATH_MAX / 16];
static char asked[PATH_MAX]; /* the user's file (SOFTVERBS_STORY); "": no file */
static atomic_uint count;

/* Removes a file of this name, which an earlier process has left, unless it is already this process's own. */
void kept_story_place(const char *where, unsigned slot)
{
    char now[sizeof path];
    int length =
        snprintf(now, sizeof now, "%s/" LAST_LINES_PREFIX "%d-%u" KEPT_STORY_SUFFIX, where, (int)getpid(), slot);
    if ((size_t)length >= sizeof now || !strcmp(now, path))
        return;
    strcpy(path, now);
    strcpy(directory, where);
    const char *file = setting_environment(SETTING_STORY);
    snprintf(asked, sizeof asked, "%s", file ? file : "");
    atomic_store(&count, 0);
    unlink(path);
}

bool kept_story_may(bool harmless)
{
    return *path && (*asked || log_wanted(LOG_WARN)) && atomic_load(&count) < KEPT_STORIES / (harmless ? 2 : 1);
}

static void append_story(const char *line, size_t size)
{
    int kept = errno, before = uncancelled_begin();
    int error = *asked ? shared_file_append(asked, true, line, size) : 0;
    if (error)
        log_write(LOG_ERROR, "a story of a queue pair can't be written to \"%s\": %s", asked, strerror(error));
    if (log_wanted(LOG_WARN)) {
        last_lines_make_room(directory);
        shared_file_append(path, true, line, size);
    }
    uncancelled_end(before);
    errno = kept;
}

void kept_story_add(const char *line, size_t size)
{
    if (size <= KEPT_STORY_BYTES && kept_story_may(false) && atomic_fetch_add(&count, 1) < KEPT_STORIES)
        append_story(line, size);
}

void kept_story_renew(const char *line, size_t size)
{
    if (size <= KEPT_STORY_BYTES && *path)
        append_story(line, size);
}
