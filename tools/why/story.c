#include "why/story.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
#include "print/screen.h"
#include "report/reports.h"
#include "why/story_words.h"
#include "why/substitute.h"

/* -- where stories are */

static bool is_of_file(const char *name)
{
    size_t length = strlen(name), suffix = sizeof KEPT_STORY_SUFFIX - 1;
    return !strncmp(name, LAST_LINES_PREFIX, sizeof LAST_LINES_PREFIX - 1) && length > suffix &&
           !strcmp(name + length - suffix, KEPT_STORY_SUFFIX);
}

/* Opens a file of stories, which the caller closes. NULL: it can't be read, is too large, or is another user's file. */
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

enum { ENDED = offsetof(struct facts_story, ended) };

static void add_file(json_t *list, FILE *file)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, file)) > 0) {
        json_t *story = facts_parse(line, (size_t)length);
        if (json_is_object(story)) {
            if (!facts_member(&facts_of_story, story, ENDED)) /* a debugger's story has "ended": false */
                json_object_set_new(story, facts_at(&facts_of_story, ENDED)->name, json_true());
            json_array_append(list, story);
        }
        json_decref(story);
    }
    free(line);
}

/* All stories that processes have left in the directory. */
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

/* NULL, after a message: a file can't be read. */
static json_t *read_named(const char *const *paths)
{
    json_t *list = json_array();
    for (; *paths; paths++) {
        FILE *file = fopen(*paths, "re");
        if (!file) {
            complain("\"%s\" can't be read: %s.", *paths, strerror(errno));
            json_decref(list);
            return NULL;
        }
        add_file(list, file);
        fclose(file);
    }
    return list;
}

json_t *story_lines(const char *directory, const char *const *from)
{
    json_t *lines = from ? read_named(from) : json_array();
    json_t *kept = lines && directory ? read_kept(directory) : NULL;
    if (kept)
        json_array_extend(lines, kept);
    json_decref(kept);
    return lines;
}

/* -- ends as structs; an end that story_end_read refuses is left out */

struct line {
    json_t *json; /* NULL: no line */
    struct story_end end;
    bool told; /* a story has this end already */
};

struct lines {
    struct line *list;
    size_t count;
    json_t *json; /* the array that they are read from; it has their texts */
};

/* Takes over the reference to the array; NULL is an empty array. */
static struct lines lines_begin(json_t *json)
{
    size_t i;
    json_t *each;
    struct lines lines = {calloc(json_array_size(json) + 1, sizeof *lines.list), 0, json};
    json_array_foreach (json, i, each) {
        struct line *line = lines.list ? &lines.list[lines.count] : NULL;
        if (line && story_end_read(&line->end, each)) {
            line->json = each;
            lines.count++;
        }
    }
    return lines;
}

static void lines_end(struct lines *lines)
{
    free(lines->list);
    json_decref(lines->json);
}

/* The sources of stories. Either list may be empty. */
struct sources {
    const char *directory;    /* whose live processes are asked; NULL: no process is asked */
    struct lines named, kept; /* of the file that the user names, and of the directory */
    int *silent;              /* a process that did not answer */
};

/* The queue pair whose story is wanted. Several processes may have had its number, so its process and peer are wanted,
 * too. */
struct wanted {
    uint64_t qp, pid;                 /* pid 0: any process */
    uint64_t peer;                    /* the number of its peer; 0: any peer */
    const struct facts_story *not_of; /* not of the process of this end; NULL: of any */
    const char *gid;                  /* its GID, where both are known; NULL: any */
};

static bool is_of_process(const struct facts_story *story, const struct facts_story *of)
{
    return of && story->pid.value == of->pid.value && !strcmp(facts_text(story->host), facts_text(of->host));
}

static bool is_wanted(const struct story_end *end, const struct wanted *wanted)
{
    const struct facts_story *story = &end->story;
    return story->qp.value == wanted->qp && !substitute_is(end) && !is_of_process(story, wanted->not_of) &&
           (!wanted->gid || !story->gid || !strcmp(wanted->gid, story->gid)) &&
           (!wanted->pid || story->pid.value == wanted->pid) &&
           (!wanted->peer || !story->peer_qp.value || story->peer_qp.value == wanted->peer);
}

/* The latest line that is wanted; NULL: no line is. */
static const struct line *choose(const struct lines *lines, const struct wanted *wanted)
{
    const struct line *best = NULL;
    for (const struct line *line = lines->list; line < lines->list + lines->count; line++)
        if (is_wanted(&line->end, wanted) && (!best || line->end.story.time.value >= best->end.story.time.value))
            best = line;
    return best;
}

/* Asks live processes for all ends of this number: the queue pair, and stand-ins. */
static struct lines ask_live(const struct sources *sources, uint64_t qp)
{
    char request[32];
    snprintf(request, sizeof request, "story %" PRIu64, qp);
    return lines_begin(sources->directory ? reports_ask_all(sources->directory, request, sources->silent) : NULL);
}

/* A copy of the line that outlives its list; the caller releases its JSON. NULL gives an empty line. */
static struct line keep(const struct line *line)
{
    struct line kept = line ? *line : (struct line){0};
    json_incref(kept.json);
    return kept;
}

/* Finds a line of the named file, otherwise of a live process (if `ask`), otherwise of the directory. */
static struct line find(const struct sources *sources, const struct wanted *wanted, bool ask)
{
    const struct line *found = choose(&sources->named, wanted);
    struct lines live = !found && ask ? ask_live(sources, wanted->qp) : (struct lines){0};
    found = found ? found : choose(&live, wanted);
    struct line line = keep(found ? found : choose(&sources->kept, wanted));
    lines_end(&live);
    return line;
}

/* -- both ends */

/* The peer's line, even where only ended processes were asked for: the peer may be alive. */
static struct line find_peer(const struct sources *sources, const struct facts_story *own, bool ask)
{
    struct wanted wanted = {own->peer_qp.value, own->peer_pid.value, own->qp.value, NULL, own->peer_gid};
    bool itself = wanted.qp == wanted.peer; /* adapters of two hosts may give the same number */
    if (!wanted.qp || (itself && !own->driver))
        return (struct line){0};
    wanted.not_of = itself ? own : NULL;
    struct line peer = find(sources, &wanted, ask);
    return peer.json || ask ? peer : find(sources, &wanted, true);
}

/* An end that has the peer's number and is connected with another queue pair. Adapters of other hosts may give the same
 * number, so the GID shows that it is the very one. */
static struct line find_stranger(const struct sources *sources, const struct facts_story *own)
{
    const struct wanted wanted = {own->peer_qp.value, own->peer_pid.value, 0, NULL, own->peer_gid};
    bool itself = wanted.qp == own->qp.value;
    struct line found = wanted.qp && !itself ? find(sources, &wanted, true) : (struct line){0};
    if (!found.json || !own->driver || (own->peer_gid && found.end.story.gid))
        return found;
    json_decref(found.json);
    return (struct line){0};
}

/* -- SRD: each message that failed names its receiver */

static bool has_end(const json_t *ends, uint64_t qp)
{
    struct story_end end;
    for (size_t i = 0; i < json_array_size(ends); i++)
        if (story_end_read(&end, json_array_get(ends, i)) && end.story.qp.value == qp)
            return true;
    return false;
}

enum { RECEIVERS = 8 }; /* as many messages as the library keeps: each may ask all processes */

/* The ends on this host that the messages were for: also of live processes where only ended ones were asked for. */
static json_t *find_receivers(const struct sources *sources, const struct facts_story *own, bool ask)
{
    struct facts_error error;
    json_t *ends = json_array();
    for (size_t i = 0; i < RECEIVERS && facts_read_at(&facts_of_error, &own->failed, i, &error); i++) {
        const struct wanted wanted = {.qp = error.peer_qp.value};
        if (!wanted.qp || facts_is(&error.network) || has_end(ends, wanted.qp))
            continue;
        struct line found = find(sources, &wanted, ask);
        found = found.json || ask ? found : find(sources, &wanted, true);
        if (found.json && !strcmp(facts_text(found.end.story.type), facts_text(own->type)))
            json_array_append(ends, found.json);
        json_decref(found.json);
    }
    return ends;
}

/* -- XRC: the process whose shared receive queue a message names executes the message in place of the
 * process that has the queue pair */

/* The best substitute among `best` and the lines. `pid` is of the process that has the queue pair; 0: not known. */
static const struct line *choose_substitute(const struct lines *lines, uint64_t qp, uint64_t pid,
                                            const struct line *best)
{
    for (const struct line *line = lines->list; line < lines->list + lines->count; line++) {
        const struct facts_story *story = &line->end.story;
        bool fits = substitute_is(&line->end) && story->qp.value == qp && (!pid || story->peer_pid.value == pid);
        if (fits && (!best || substitute_is_better(&line->end, &best->end)))
            best = line;
    }
    return best;
}

/* The stand-in of the end that receives. An empty line: no process is a stand-in, or it has left nothing. */
static struct line find_substitute(const struct sources *sources, const struct story_end *end, const struct line *peer)
{
    const struct facts_story *own = &end->story;
    bool receives = !strcmp(facts_text(own->type), "XRC_RECV");
    uint64_t qp = (receives ? own->qp : own->peer_qp).value;
    uint64_t pid = peer->json && !receives ? peer->end.story.pid.value : (receives ? own->pid : own->peer_pid).value;
    if (strncmp(facts_text(own->type), "XRC", 3) != 0 || substitute_is(end))
        return (struct line){0};
    struct lines live = ask_live(sources, qp);
    const struct line *best =
        choose_substitute(&sources->kept, qp, pid, choose_substitute(&sources->named, qp, pid, NULL));
    struct line line = keep(choose_substitute(&live, qp, pid, best));
    lines_end(&live);
    return line;
}

/* Notes that a story has this end. */
static void mark(struct lines *lines, const struct line *told)
{
    const struct facts_story *end = &told->end.story;
    for (struct line *line = lines->list; told->json && line < lines->list + lines->count; line++)
        line->told |= line->end.story.qp.value == end->qp.value && line->end.story.pid.value == end->pid.value;
}

/* The receivers of messages of SRD have stories of their own, too. */
static json_t *list_ends(struct sources *sources, const struct line *own, const struct line *peer,
                         const struct line *substitute, json_t *receivers)
{
    json_t *ends = json_array();
    const struct line *const all[] = {own, peer, substitute};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        json_array_append(ends, all[i]->json); /* does nothing with NULL */
        mark(&sources->named, all[i]);
        mark(&sources->kept, all[i]);
    }
    for (size_t i = 0; i < json_array_size(receivers); i++)
        if (json_array_get(receivers, i) != own->json)
            json_array_append(ends, json_array_get(receivers, i));
    return ends;
}

static json_t *join(struct sources *sources, const struct line *own, bool ask)
{
    char why[256];
    const struct facts_story *story = &own->end.story;
    struct line peer = find_peer(sources, story, ask), substitute = find_substitute(sources, &own->end, &peer);
    bool alone = !peer.json && (sources->directory || story->driver) && story->peer_qp.value;
    struct line stranger = alone ? find_stranger(sources, story) : (struct line){0};
    json_t *processes =
        alone && sources->directory && !stranger.json ? reports_collect(sources->directory, why, sizeof why) : NULL;
    json_t *receivers = find_receivers(sources, story, ask);
    struct story_ends known = {own->json, peer.json, substitute.json, stranger.json, receivers, processes};
    json_t *joined = json_pack("{s:o, s:o, s:i}", "ends", list_ends(sources, own, &peer, &substitute, receivers),
                               "sentences", story_sentences(&known), "reason", (int)story_reason(&known));
    json_decref(peer.json);
    json_decref(substitute.json);
    json_decref(stranger.json);
    json_decref(receivers);
    json_decref(processes);
    return joined;
}

/* The end of an adapter's queue pair that is of interest to its peer alone. */
static bool is_quiet(const struct story_end *end)
{
    const struct facts_story *story = &end->story;
    return story->driver && !story_end_reason(end) && !story->flushed_sends.value && !story->fatal &&
           !story_end_is_in(end, "ERR");
}

/* Joins the queue pairs first, then the stand-ins whose connections have left nothing else. */
static void join_all(struct sources *sources, uint64_t pid, json_t *stories)
{
    const struct lines *lines = sources->named.json ? &sources->named : &sources->kept;
    for (int substitutes = false; substitutes <= true; substitutes++)
        for (const struct line *line = lines->list; line < lines->list + lines->count; line++) {
            const struct wanted wanted = {line->end.story.qp.value, line->end.story.pid.value, 0, NULL, NULL};
            if ((!pid || wanted.pid == pid) && wanted.qp && substitute_is(&line->end) == substitutes && !line->told &&
                !is_quiet(&line->end))
                json_array_append_new(stories, join(sources, substitutes ? line : choose(lines, &wanted), false));
        }
}

/* The last line whose peer is the wanted queue pair; a stand-in's line only if no other line has that peer. */
static const struct line *choose_of_peer(const struct lines *lines, const struct wanted *wanted,
                                         const struct line *best)
{
    for (const struct line *line = lines->list; line < lines->list + lines->count; line++)
        if (line->end.story.peer_qp.value == wanted->qp &&
            (!wanted->pid || line->end.story.peer_pid.value == wanted->pid) && (!best || !substitute_is(&line->end)))
            best = line;
    return best;
}

/* Adds the story of the other end, if it has left one, for a process that was killed before it could write. The first
 * sentence says so. */
static void add_of_peer(struct sources *sources, const struct wanted *wanted, json_t *stories)
{
    char text[256];
    struct facts_told told;
    const struct line *best = choose_of_peer(&sources->kept, wanted, choose_of_peer(&sources->named, wanted, NULL));
    if (!best)
        return;
    json_t *story = join(sources, best, false);
    if (*sources->silent)
        snprintf(text, sizeof text, DID_NOT_ANSWER " This is the story of its peer.", *sources->silent,
                 (unsigned long)wanted->qp);
    else
        snprintf(text, sizeof text, "Of queue pair 0x%x itself nothing is left: this is the story of its peer.",
                 (unsigned)wanted->qp);
    facts_read(&facts_of_told, story, &told);
    json_array_insert_new((json_t *)facts_json(&told.sentences), 0, json_string(text));
    json_array_append_new(stories, story);
}

static void add_wanted(struct sources *sources, const struct wanted *wanted, bool ask, json_t *stories)
{
    struct line own = find(sources, wanted, ask);
    if (own.json)
        json_array_append_new(stories, join(sources, &own, ask));
    else
        add_of_peer(sources, wanted, stories);
    json_decref(own.json);
}

json_t *story_collect(const struct story_question *question)
{
    json_t *named = question->from ? read_named(question->from) : NULL, *stories = json_array();
    if (question->from && !named) {
        json_decref(stories);
        return NULL;
    }
    struct sources sources = {question->directory, lines_begin(named),
                              lines_begin(question->directory ? read_kept(question->directory) : NULL),
                              question->silent};
    if (question->qp)
        add_wanted(&sources, &(struct wanted){question->qp, (uint64_t)question->pid, 0, NULL, NULL},
                   !question->last && !question->from, stories);
    else
        join_all(&sources, (uint64_t)question->pid, stories);
    lines_end(&sources.named);
    lines_end(&sources.kept);
    return stories;
}

void story_print(FILE *out, const json_t *story)
{
    size_t i;
    json_t *line;
    struct facts_told told;
    facts_read(&facts_of_told, story, &told);
    json_array_foreach (facts_json(&told.sentences), i, line)
        screen_wrap(out, screen_width(out), 0, 4, json_string_value(line));
}
