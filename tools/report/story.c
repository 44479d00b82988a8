#include "story.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag/kept_story.h"
#include "diag/last_lines.h"
#include "print/emit.h"
#include "print/screen.h"
#include "reports.h"
#include "story_words.h"

static json_int_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* -- where stories are */

static bool is_of_file(const char *name)
{
    size_t length = strlen(name), suffix = sizeof KEPT_STORY_SUFFIX - 1;
    return !strncmp(name, LAST_LINES_PREFIX, sizeof LAST_LINES_PREFIX - 1) && length > suffix &&
           !strcmp(name + length - suffix, KEPT_STORY_SUFFIX);
}

/* The caller's; NULL: it can't be read, or is another user's. */
static FILE *open_file(int directory, const char *name)
{
    struct stat status;
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    bool ours = !fstat(fd, &status) && S_ISREG(status.st_mode) && (status.st_uid == geteuid() || !geteuid());
    FILE *file = ours && status.st_size <= KEPT_STORY_FILE_BYTES ? fdopen(fd, "r") : NULL;
    if (!file)
        close(fd);
    return file;
}

static void add_file(json_t *list, FILE *file)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, file)) > 0) {
        json_t *story = json_loadb(line, (size_t)length, 0, NULL);
        if (json_is_object(story)) {
            json_object_set_new(story, "ended", json_true());
            json_array_append(list, story);
        }
        json_decref(story);
    }
    free(line);
}

/* All that processes have left in the directory. */
static json_t *read_kept(const char *directory)
{
    json_t *list = json_array();
    struct dirent *entry;
    DIR *stream = opendir(directory);
    while (stream && (entry = readdir(stream))) {
        FILE *file = is_of_file(entry->d_name) ? open_file(dirfd(stream), entry->d_name) : NULL;
        if (file) {
            add_file(list, file);
            fclose(file);
        }
    }
    if (stream)
        closedir(stream);
    return list;
}

/* Which story is wanted: of a number that a later process may have, too. */
struct wanted {
    json_int_t qp, pid; /* 0: any */
    json_int_t peer;    /* whom it is connected with, if it says so; 0: any */
};

static bool is_wanted(const json_t *story, const struct wanted *wanted)
{
    return number_of(story, "qp") == wanted->qp && (!wanted->pid || number_of(story, "pid") == wanted->pid) &&
           (!wanted->peer || !number_of(story, "peer_qp") || number_of(story, "peer_qp") == wanted->peer);
}

/* The latest. */
static json_t *choose(const json_t *list, const struct wanted *wanted)
{
    size_t i;
    json_t *story, *best = NULL;
    json_array_foreach((json_t *)list, i, story) if (is_wanted(story, wanted) &&
                                                     (!best || number_of(story, "time") >= number_of(best, "time")))
        best = story;
    return best;
}

/* Of a live process, or one that was kept. NULL: none. A reference that the caller gives back. */
static json_t *find(const char *directory, const json_t *kept, const struct wanted *wanted, bool last)
{
    json_t *live = last ? NULL : reports_ask_story(directory, (uint32_t)wanted->qp);
    if (live && is_wanted(live, wanted))
        return live;
    json_decref(live);
    return json_incref(choose(kept, wanted));
}

/* -- both ends */

/* That of the peer, even where only what has ended was asked for: it may live on. */
static json_t *find_peer(const char *directory, const json_t *kept, const json_t *own, bool last)
{
    struct wanted wanted = {number_of(own, "peer_qp"), number_of(own, "peer_pid"), number_of(own, "qp")};
    if (!wanted.qp)
        return NULL;
    if (wanted.qp == wanted.peer) /* connected with itself */
        return NULL;
    json_t *peer = find(directory, kept, &wanted, last);
    return peer || !last ? peer : find(directory, kept, &wanted, false);
}

json_t *story_collect(const char *directory, uint32_t qp, int pid, bool last)
{
    struct wanted wanted = {qp, pid, 0};
    json_t *kept = read_kept(directory), *own = find(directory, kept, &wanted, last), *story = NULL;
    if (own) {
        json_t *peer = find_peer(directory, kept, own, last), *ends = json_array();
        json_array_append(ends, own);
        if (peer)
            json_array_append(ends, peer);
        story = json_pack("{s:o, s:o}", "ends", ends, "sentences", story_sentences(own, peer));
        json_decref(peer);
    }
    json_decref(own);
    json_decref(kept);
    return story;
}

void story_print(const json_t *story)
{
    size_t i;
    json_t *line;
    json_array_foreach(json_object_get(story, "sentences"), i, line)
        screen_wrap(stdout, screen_width(stdout), 0, 4, json_string_value(line));
}
