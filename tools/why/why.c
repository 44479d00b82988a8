/* softverbs why: what each live process waits for, judged by looks at its objects, a second apart (waits.h); the last
 * lines of its log (last.h); and stories of queue pairs and connections (story.h, connection_story.h). */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/settings.h"
#include "base/text/text.h"
#include "command.h"
#include "print/emit.h"
#include "print/screen.h"
#include "report/last.h"
#include "report/live_process.h"
#include "report/meeting.h"
#include "report/reports.h"
#include "why/connection_story.h"
#include "why/happened.h"
#include "why/story.h"
#include "why/story_ci.h"
#include "why/waits.h"

enum { LOOKS = 4, WAITS = offsetof(struct facts_waiting, waits) };

static void print(const json_t *list)
{
    size_t i, k;
    json_t *json, *line;
    struct facts_waiting process;
    json_array_foreach (list, i, json) {
        facts_read(&facts_of_waiting, json, &process);
        printf("%d %s\n", (int)process.pid.value, facts_text(process.program));
        json_array_foreach (facts_json(&process.waits), k, line)
            screen_wrap(stdout, screen_width(stdout), (size_t)printf("    "), 4, json_string_value(line));
    }
}

/* Returns a list with an object for the process `pid`; 0: for each process. */
static json_t *judge_all(const struct seen *before, const struct seen *now, int pid)
{
    json_t *list = json_array();
    for (size_t i = 0; i < now->count; i++) {
        const struct seen_process *process = &now->processes[i];
        uint64_t number = process->own.pid.value;
        if (pid && number != (uint64_t)pid)
            continue;
        json_t *said = waits_of(now, process, seen_find(before, number));
        json_array_append_new(list, json_pack("{s:I, s:o, s:o}", "pid", (json_int_t)number, "program",
                                              emit_text(facts_text(process->own.program)), "waits", said));
    }
    return list;
}

static json_t *judge_reports(const json_t *before, const json_t *now, int pid)
{
    struct seen first = seen_begin(before), second = seen_begin(now);
    json_t *list = judge_all(&first, &second, pid);
    seen_end(&first);
    seen_end(&second);
    return list;
}

/* Returns whether something is still under way in a process, as far as two looks show. */
static bool is_moving(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *waits = facts_member(&facts_of_waiting, json_array_get(list, i), WAITS);
        if (!strcmp(json_string_value(json_array_get(waits, 0)), WAITS_FOR_NOTHING))
            return true;
    }
    return false;
}

/* Looks until nothing moves any more, at most LOOKS times. NULL: the directory can't be read (`why`). */
static json_t *look(const char *directory, int pid, char *why, size_t size)
{
    json_t *list = NULL, *before = reports_collect(directory, why, size);
    for (int i = 1; before && i < LOOKS && (!list || is_moving(list)); i++) {
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        json_t *now = reports_collect(directory, why, size);
        json_decref(list);
        list = now ? judge_reports(before, now, pid) : NULL;
        json_decref(before);
        before = now;
    }
    json_decref(before);
    return list;
}

static int look_and_tell(const char *directory, int pid, bool as_json)
{
    char why[512];
    json_t *list = look(directory, pid, why, sizeof why);
    bool found = json_array_size(list);
    if (!list)
        complain("%s", why);
    else if (!found && pid)
        complain(MEETING_NO_PROCESS, (long)pid);
    else if (as_json)
        emit(json_incref(list));
    else if (!found)
        puts(MEETING_NONE);
    else
        print(list);
    json_decref(list);
    return list && (found || !pid) ? EXIT_OK : EXIT_NEGATIVE;
}

static int tell_last(const char *directory, int pid, bool as_json)
{
    json_t *list = last_collect(directory, pid);
    bool found = json_array_size(list);
    if (!found && pid)
        complain("No process %d has left a line here.", pid);
    else if (as_json)
        emit(json_incref(list));
    else if (!found)
        puts("No process has left a line here.");
    else
        last_print(list);
    json_decref(list);
    return found || !pid ? EXIT_OK : EXIT_NEGATIVE;
}

enum { FILES_MOST = 16 };

/* The form in which stories are printed. */
enum form { FORM_TEXT, FORM_GITHUB, FORM_JUNIT, FORM_SARIF };

static int tell_events(const char *directory, const char *kind, unsigned long number, int pid, bool as_json)
{
    int silent = 0;
    json_t *list = happened_collect(directory, kind, number, pid, &silent);
    bool is_process = !strcmp(kind, "process"), all = is_process && !pid, found = json_array_size(list);
    if (!found && silent && !all)
        complain(
            "Process %d did not answer within a second: it is stopped, has no time, or is another user's and refuses.",
            silent);
    else if (!found && is_process && pid)
        complain(MEETING_NO_PROCESS, (long)pid);
    else if (!found && !all)
        complain("No process%s that lives has %s %lu here.", pid ? " with this number" : "", kind, number);
    else if (as_json)
        emit(json_incref(list));
    else if (!found)
        puts(MEETING_NONE);
    else
        happened_print(list);
    json_decref(list);
    return found || all ? EXIT_OK : EXIT_NEGATIVE;
}

/* The request of the command line. */
struct question {
    bool last, as_json;
    enum form form;           /* of stories */
    const char *kind;         /* the kind of an object other than a queue pair, or "process"; NULL: no such object */
    unsigned long number, qp; /* the object's; the queue pair's, 0: all queue pairs */
    const char *const *from;  /* files, to a NULL; NULL: no file was named */
};

static void print_as(enum form form, const json_t *stories, void (*as_text)(const json_t *))
{
    static void (*const printers[])(const json_t *) = {
        [FORM_GITHUB] = story_annotate, [FORM_JUNIT] = story_print_junit, [FORM_SARIF] = story_print_sarif};
    (form ? printers[form] : as_text)(stories);
}

static int tell_identifier(const char *directory, const struct question *question, int pid)
{
    json_t *stories = connection_story_collect(&(struct connection_question){
        .directory = question->from && !setting_environment(SETTING_DIR) ? NULL : directory,
        .from = question->from,
        .number = question->number,
        .pid = pid,
        .last = question->last});
    bool found = json_array_size(stories);
    if (!stories)
        return EXIT_USAGE;
    if (!found)
        complain("No process%s has identifier %lu here, and no process has left its story.",
                 pid ? " of this number" : "", question->number);
    else if (question->as_json)
        emit(json_incref(stories));
    else
        print_as(question->form, stories, happened_print);
    json_decref(stories);
    return found ? EXIT_OK : EXIT_NEGATIVE;
}

static void complain_of_none(const struct question *question, int silent)
{
    if (silent)
        complain(DID_NOT_ANSWER, silent, question->qp);
    else if (question->from)
        complain("\"%s\"%s no story of queue pair 0x%lx.", question->from[0],
                 question->from[1] ? " and the other files have" : " has", question->qp);
    else
        complain("No process%s has a queue pair 0x%lx here%s.", question->last ? "" : " that lives", question->qp,
                 question->last ? " and has left its story" : ", and no process has left its story");
}

static void print_stories(const json_t *stories)
{
    size_t i;
    json_t *story;
    json_array_foreach (stories, i, story) {
        if (i)
            puts("");
        story_print(stdout, story);
    }
}

static json_t *collect_connections(const struct question *question, const char *directory, int pid)
{
    return connection_story_collect(&(struct connection_question){
        .directory = directory, .from = question->from, .pid = pid, .last = true, .all = true});
}

/* Prints the stories of connections, after the stories of queue pairs unless `first`. */
static void print_connections(const struct question *question, const char *directory, int pid, bool first)
{
    json_t *stories = collect_connections(question, directory, pid);
    if (json_array_size(stories) && !first)
        puts("");
    happened_print(stories);
    if (!json_array_size(stories) && first)
        puts("No queue pair has left a story.");
    json_decref(stories);
}

static int tell_stories(const char *directory, const struct question *question, int pid)
{
    int silent = 0;
    bool here = !question->from || setting_environment(SETTING_DIR); /* a file may come from elsewhere */
    json_t *stories = story_collect(&(struct story_question){.directory = here ? directory : NULL,
                                                             .from = question->from,
                                                             .qp = (uint32_t)question->qp,
                                                             .pid = pid,
                                                             .last = question->last,
                                                             .silent = &silent});
    bool found = json_array_size(stories);
    if (!stories)
        return EXIT_USAGE;
    if (question->form && !question->qp)
        story_ci_add(stories, collect_connections(question, here ? directory : NULL, pid));
    if (!found && question->qp)
        complain_of_none(question, silent);
    else if (question->as_json)
        emit(json_incref(question->qp ? json_array_get(stories, 0) : stories));
    else
        print_as(question->form, stories, print_stories);
    if (!question->as_json && !question->qp && question->form == FORM_TEXT && stories)
        print_connections(question, here ? directory : NULL, pid, !found);
    json_decref(stories);
    return found || !question->qp ? EXIT_OK : EXIT_NEGATIVE;
}

/* The options that take the number of an object. */
static const struct {
    int option;
    const char *kind, *name;
    unsigned long least, most;
} kinds[] = {
    {'q', "qp", "a queue pair", 1, (1 << 24) - 1},
    {'c', "cq", "a completion queue", 1, UINT32_MAX},
    {'s', "srq", "a shared receive queue", 1, UINT32_MAX},
    {'i', "id", "an identifier", 0, UINT32_MAX},
};

/* Reads the number of an object, from optarg. False, after a message: such an object can't have the number. */
static bool read_number(const struct command *command, int option, struct question *question)
{
    uint64_t number;
    size_t i = 0;
    while (kinds[i].option != option)
        i++;
    if (text_number_or_hex(optarg, kinds[i].least, kinds[i].most, &number)) {
        question->kind = option == 'q' ? question->kind : kinds[i].kind;
        *(option == 'q' ? &question->qp : &question->number) = number;
        return true;
    }
    command_misused(command, "\"%s\" is not the number of %s.", optarg, kinds[i].name);
    return false;
}

static int answer(const char *directory, const struct question *question, int pid)
{
    if (question->kind && !strcmp(question->kind, "id"))
        return tell_identifier(directory, question, pid);
    if (question->qp || question->from || question->form)
        return tell_stories(directory, question, pid);
    if (question->kind)
        return tell_events(directory, question->kind, question->number, pid, question->as_json);
    return (question->last ? tell_last : look_and_tell)(directory, pid, question->as_json);
}

/* The files of --from, or of --join, which are the arguments. */
struct files {
    const char *names[FILES_MOST + 1]; /* ends with NULL */
    unsigned count;
    bool joined;
};

/* 0, or the exit status after a sentence. */
static int take_file(const struct command *command, struct files *files, const char *name)
{
    if (files->count == FILES_MOST)
        return command_misused(command, "It takes at most %d files.", FILES_MOST);
    files->names[files->count++] = name;
    return 0;
}

/* 0, or the exit status after a sentence. */
static int take_option(const struct command *command, int option, struct question *question, struct files *files)
{
    question->last |= option == 'l';
    files->joined |= option == 'J';
    question->form = option >= FORM_GITHUB && option <= FORM_SARIF ? (enum form)option : question->form;
    if (option == 'e')
        question->kind = "process";
    else if (option == 'f')
        return take_file(command, files, optarg);
    else if (strchr("qcsi", option) && !read_number(command, option, question))
        return EXIT_USAGE;
    return 0;
}

/* The arguments are files, or the number of a process. 0, or the exit status after a sentence. */
static int take_arguments(const struct command *command, int argc, char **argv, struct files *files, int *pid)
{
    int status = 0;
    while (files->joined && !status && optind < argc)
        status = take_file(command, files, argv[optind++]);
    if (!status && files->joined && files->count < 2)
        status = command_misused(command, "--join needs the files of both ends.");
    *pid = status ? 0 : (int)live_process_number(argv[optind]);
    if (!status && (optind + 1 < argc || (optind < argc && !*pid)))
        status = command_misused(command, "It takes the number of one process.");
    return status;
}

static int why(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {
        {"last", no_argument, NULL, 'l'},           {"qp", required_argument, NULL, 'q'},
        {"cq", required_argument, NULL, 'c'},       {"srq", required_argument, NULL, 's'},
        {"id", required_argument, NULL, 'i'},       {"events", no_argument, NULL, 'e'},
        {"from", required_argument, NULL, 'f'},     {"join", no_argument, NULL, 'J'},
        {"github", no_argument, NULL, FORM_GITHUB}, {"junit", no_argument, NULL, FORM_JUNIT},
        {"sarif", no_argument, NULL, FORM_SARIF},   MEETING_OPTIONS};
    struct meeting meeting = {0};
    struct question question = {0};
    struct files files = {0};
    int option, pid, status = 0;
    while (!status && (option = meeting_option(command, argc, argv, options, &meeting)) != -1)
        status = take_option(command, option, &question, &files);
    status = status ? status : take_arguments(command, argc, argv, &files, &pid);
    status = status ? status : meeting_find(command, &meeting);
    question.from = files.count ? files.names : NULL;
    question.as_json = meeting.as_json;
    return status ? status : answer(meeting.directory, &question, pid);
}

const struct command why_command = {
    .name = "why",
    .arguments = "[OPTIONS] [PID]",
    .summary = "Say what a program that hangs waits for, and why a queue pair failed",
    .help = "  --last            print the last twenty lines of the log of each process, also\n"
            "                    of one that has ended, and of one that printed nothing\n"
            "  --qp NUMBER       print the story of this queue pair's first error, from both\n"
            "                    ends if both are on this host; with --last of processes that\n"
            "                    have ended\n"
            "  --cq NUMBER       print the last events of this completion queue, and the fate\n"
            "                    of the event of its completions; --srq NUMBER: of this\n"
            "                    shared receive queue (\"softverbs show\" has the numbers)\n"
            "  --id NUMBER       print the story of this identifier of librdmacm and its\n"
            "                    connection, from both ends: which rejected it, or why no\n"
            "                    answer arrived; with --last of processes that have ended\n"
            "  --events          print the last events of each process: refused calls,\n"
            "                    asynchronous events, changes of devices, actions of a script\n"
            "  --from FILE       print the stories in a file of \"run --story FILE\": of this\n"
            "                    queue pair, or all; also ask live processes if DIR is given\n"
            "  --join FILE...    the same of several files, whose ends are joined: one of\n"
            "                    each host, of \"around --story FILE\"\n"
            "  --github          print stories as annotations of a workflow of GitHub: all\n"
            "                    that processes have left, unless --qp or --from is given\n"
            "  --junit           the same as JUnit XML\n"
            "  --sarif           the same as SARIF 2.1.0\n"
            "  --json            print JSON: a list with one object for each process, or\n"
            "                    stories (docs/reference/json.md)\n" MEETING_HELP_DIR "\n"
            "It looks at the process, or at all, twice or more, a second apart, for\n"
            "completions that are not polled, sends that were not signalled, peers that have\n"
            "no receives, are in the wrong state or are gone, and errors. \"softverbs show\"\n"
            "lists the objects, \"softverbs explain\" says what a number means.\n"
            "\n"
            "The last lines stay in the directory for seven days, of at most 64 processes,\n"
            "for this user only, as do the stories of the first eight queue pairs of a\n"
            "process that failed; SOFTVERBS_LOG=none keeps no lines.\n"
            "\n"
            "Exit status: 0, or 1 when there is no such process, object or story.\n",
    .run = why,
};
