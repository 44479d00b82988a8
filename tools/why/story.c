#include "why/story.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/user.h"
#include "command.h"
#include "diag/kept_story.h"
#include "diag/last_lines.h"
#include "facts/read.h"
#include "print/emit.h"
#include "print/screen.h"
#include "report/reports.h"
#include "why/standin.h"
#include "why/story_words.h"

static json_int_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* Whether this is the end of a stand-in (standin.h). */
static bool is_standin(const json_t *story)
{
    return json_is_true(json_object_get(story, "stands_in"));
}

static bool is_better(const json_t *one, const json_t *other)
{
    struct story_end rooms[2];
    const struct story_end *first = story_end_read(&rooms[0], one), *second = story_end_read(&rooms[1], other);
    return first && (!second || standin_is_better(first, second));
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
    bool ours = !fstat(fd, &status) && S_ISREG(status.st_mode) && (!geteuid() || user_owns_file(fd, "", &status));
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
        json_t *story = facts_parse(line, (size_t)length);
        if (json_is_object(story)) {
            if (!json_object_get(story, "ended")) /* false: a debugger has seen it before its end */
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

/* NULL, after a sentence. */
static json_t *read_named(const char *path)
{
    FILE *file = fopen(path, "re");
    json_t *list = file ? json_array() : NULL;
    if (!file) {
        complain("\"%s\" can't be read: %s.", path, strerror(errno));
        return NULL;
    }
    add_file(list, file);
    fclose(file);
    return list;
}

json_t *story_lines(const char *directory, const char *from)
{
    json_t *lines = from ? read_named(from) : json_array();
    json_t *kept = lines && directory ? read_kept(directory) : NULL;
    if (kept)
        json_array_extend(lines, kept);
    json_decref(kept);
    return lines;
}

/* The sources besides live processes, in the order in which they are searched; either may be NULL. */
struct sources {
    const char *directory; /* whose live processes are asked; NULL: none are */
    json_t *named, *kept;
};

/* Which story is wanted: of a number that a later process may have, too. */
struct wanted {
    json_int_t qp, pid; /* 0: any */
    json_int_t peer;    /* the number of its peer, if it is known; 0: any */
};

static bool is_wanted(const json_t *story, const struct wanted *wanted)
{
    return number_of(story, "qp") == wanted->qp && !is_standin(story) &&
           (!wanted->pid || number_of(story, "pid") == wanted->pid) &&
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

/* What live processes have of this number: the queue pair, and stand-ins. The caller's. */
static json_t *ask_live(const struct sources *sources, json_int_t qp)
{
    char request[32];
    snprintf(request, sizeof request, "story %" JSON_INTEGER_FORMAT, qp);
    return sources->directory ? reports_ask_all(sources->directory, request) : json_array();
}

/* Of a live process, or one that was kept. NULL: none. A reference that the caller gives back. */
static json_t *find(const struct sources *sources, const struct wanted *wanted, bool ask)
{
    json_t *named = choose(sources->named, wanted);
    json_t *answers = !named && ask ? ask_live(sources, wanted->qp) : json_array();
    json_t *live = json_incref(choose(answers, wanted));
    json_decref(answers);
    if (live)
        return live;
    return json_incref(named ? named : choose(sources->kept, wanted));
}

/* -- both ends */

/* That of the peer, even where only what has ended was asked for: it may live on. */
static json_t *find_peer(const struct sources *sources, const json_t *own, bool ask)
{
    struct wanted wanted = {number_of(own, "peer_qp"), number_of(own, "peer_pid"), number_of(own, "qp")};
    if (!wanted.qp)
        return NULL;
    if (wanted.qp == wanted.peer) /* connected with itself */
        return NULL;
    json_t *peer = find(sources, &wanted, ask);
    return peer || ask ? peer : find(sources, &wanted, true);
}

/* An end that has the peer's number and is connected with another. */
static json_t *find_stranger(const struct sources *sources, const json_t *own)
{
    struct wanted wanted = {number_of(own, "peer_qp"), number_of(own, "peer_pid"), 0};
    bool itself = wanted.qp == number_of(own, "qp");
    return wanted.qp && !itself ? find(sources, &wanted, true) : NULL;
}

/* -- of XRC: the process whose shared receive queue a message names executes it in place of the one that has the queue
 * pair */

/* `pid`: of the process that has the queue pair; 0: not known. */
static json_t *choose_standin(const json_t *list, json_int_t qp, json_int_t pid, json_t *best)
{
    size_t i;
    json_t *story;
    json_array_foreach((json_t *)list, i, story)
    {
        bool fits = is_standin(story) && number_of(story, "qp") == qp && (!pid || number_of(story, "peer_pid") == pid);
        if (fits && (!best || is_better(story, best)))
            best = story;
    }
    return best;
}

/* Of one of the ends, which receives. NULL: there is none, or it has left nothing. A reference that the caller gives
 * back. */
static json_t *find_standin(const struct sources *sources, const json_t *own, const json_t *peer)
{
    const char *type = json_string_value(json_object_get(own, "type"));
    bool receives = type && !strcmp(type, "XRC_RECV");
    json_int_t qp = number_of(own, receives ? "qp" : "peer_qp");
    json_int_t pid = peer && !receives ? number_of(peer, "pid") : number_of(own, receives ? "pid" : "peer_pid");
    if (!type || strncmp(type, "XRC", 3) != 0 || is_standin(own))
        return NULL;
    json_t *answers = ask_live(sources, qp);
    json_t *best = choose_standin(sources->kept, qp, pid, choose_standin(sources->named, qp, pid, NULL));
    best = json_incref(choose_standin(answers, qp, pid, best));
    json_decref(answers);
    return best;
}

static json_t *list_ends(json_t *own, json_t *peer, json_t *standin)
{
    json_t *ends = json_array();
    json_array_append(ends, own);
    if (peer)
        json_array_append(ends, peer);
    if (standin)
        json_array_append(ends, standin);
    return ends;
}

static json_t *join(const struct sources *sources, json_t *own, bool ask)
{
    char why[256];
    json_t *peer = find_peer(sources, own, ask), *standin = find_standin(sources, own, peer);
    bool alone = !peer && sources->directory && number_of(own, "peer_qp");
    json_t *stranger = alone ? find_stranger(sources, own) : NULL;
    json_t *processes = alone && !stranger ? reports_collect(sources->directory, why, sizeof why) : NULL;
    struct story_ends known = {own, peer, standin, stranger, processes};
    json_t *story = json_pack("{s:o, s:o, s:i}", "ends", list_ends(own, peer, standin), "sentences",
                              story_sentences(&known), "reason", (int)story_reason(&known));
    json_decref(peer);
    json_decref(standin);
    json_decref(stranger);
    json_decref(processes);
    return story;
}

/* Returns whether this end is in one of the stories already. */
static bool is_told(const json_t *stories, const json_t *own)
{
    size_t i, k;
    json_t *story, *end;
    json_array_foreach((json_t *)stories, i, story)
    {
        json_array_foreach(json_object_get(story, "ends"), k, end)
        {
            if (number_of(end, "qp") == number_of(own, "qp") && number_of(end, "pid") == number_of(own, "pid"))
                return true;
        }
    }
    return false;
}

static void join_all(const struct sources *sources, int pid, json_t *stories)
{
    size_t i;
    json_t *line, *list = sources->named ? sources->named : sources->kept;
    json_array_foreach(list, i, line)
    {
        struct wanted wanted = {number_of(line, "qp"), number_of(line, "pid"), 0};
        if ((!pid || wanted.pid == pid) && wanted.qp && !is_standin(line) && !is_told(stories, line))
            json_array_append_new(stories, join(sources, choose(list, &wanted), false));
    }
    json_array_foreach(list, i, line) /* the ends of which nothing is left */
    {
        if ((!pid || number_of(line, "pid") == pid) && is_standin(line) && !is_told(stories, line))
            json_array_append_new(stories, join(sources, line, false));
    }
}

/* Of a process that was killed before it could write: the story of the other end, which begins with a sentence that
 * says so, if there is one. */
static void add_of_peer(const struct sources *sources, const struct wanted *wanted, json_t *stories)
{
    size_t i;
    char text[128];
    json_t *line, *best = NULL, *list = json_array();
    json_array_extend(list, sources->named);
    json_array_extend(list, sources->kept);
    json_array_foreach(list, i, line) if (number_of(line, "peer_qp") == wanted->qp &&
                                          (!wanted->pid || number_of(line, "peer_pid") == wanted->pid) &&
                                          (!best || !is_standin(line))) best = line;
    if (best) {
        json_t *story = join(sources, best, false);
        snprintf(text, sizeof text, "Of queue pair 0x%x itself nothing is left: this is the story of its peer.",
                 (unsigned)wanted->qp);
        json_array_insert_new(json_object_get(story, "sentences"), 0, json_string(text));
        json_array_append_new(stories, story);
    }
    json_decref(list);
}

json_t *story_collect(const struct story_question *question)
{
    struct sources sources = {.directory = question->directory};
    if (question->from && !(sources.named = read_named(question->from)))
        return NULL;
    if (question->directory)
        sources.kept = read_kept(question->directory);
    bool ask = !question->last && !question->from;
    json_t *stories = json_array();
    if (question->qp) {
        struct wanted wanted = {question->qp, question->pid, 0};
        json_t *own = find(&sources, &wanted, ask);
        if (own)
            json_array_append_new(stories, join(&sources, own, ask));
        else
            add_of_peer(&sources, &wanted, stories);
        json_decref(own);
    } else
        join_all(&sources, question->pid, stories);
    json_decref(sources.named);
    json_decref(sources.kept);
    return stories;
}

void story_print(const json_t *story)
{
    size_t i;
    json_t *line;
    json_array_foreach(json_object_get(story, "sentences"), i, line)
        screen_wrap(stdout, screen_width(stdout), 0, 4, json_string_value(line));
}
