#include "diag/kept_story.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/uncancelled.h"
#include "diag/last_lines.h"
#include "diag/log.h"
#include "diag/output.h"

/* Written before the process has a queue pair, and by the child of a fork before it has one of its own. */
static char path[PATH_MAX / 16];
static char directory[PATH_MAX / 16];
static atomic_uint count;

/* A file of this name is an earlier process's, unless this one was here before. */
void kept_story_place(const char *where, unsigned slot)
{
    char now[sizeof path];
    int length =
        snprintf(now, sizeof now, "%s/" LAST_LINES_PREFIX "%d-%u" KEPT_STORY_SUFFIX, where, (int)getpid(), slot);
    if ((size_t)length >= sizeof now || !strcmp(now, path))
        return;
    strcpy(path, now);
    strcpy(directory, where);
    atomic_store(&count, 0);
    unlink(path);
}

bool kept_story_may(bool harmless)
{
    return *path && log_wanted(LOG_WARN) && atomic_load(&count) < KEPT_STORIES / (harmless ? 2 : 1);
}

/* Appending keeps lines of several threads apart. */
static void append_story(const char *line, size_t size)
{
    struct output file;
    last_lines_make_room(directory);
    if (output_open(&file, path, O_WRONLY | O_CREAT | O_APPEND))
        return;
    output_write(&file, line, size);
    output_close(&file);
}

void kept_story_add(const char *line, size_t size)
{
    int error = errno, before = uncancelled_begin();
    if (size <= KEPT_STORY_BYTES && kept_story_may(false) && atomic_fetch_add(&count, 1) < KEPT_STORIES)
        append_story(line, size);
    uncancelled_end(before);
    errno = error;
}

void kept_story_renew(const char *line, size_t size)
{
    int error = errno, before = uncancelled_begin();
    if (size <= KEPT_STORY_BYTES && *path && log_wanted(LOG_WARN))
        append_story(line, size);
    uncancelled_end(before);
    errno = error;
}
