/* softverbs replay: runs the engines of a recording again and prints step by step what they did. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text/text.h"
#include "command.h"
#include "diag/diag.h"
#include "link/guard.h"
#include "pcap.h"
#include "print/emit.h"
#include "print/screen.h"
#include "record/record.h"
#include "record/replay.h"
#include "replay/replay_words.h"

enum { QUEUES_SHOWN = 4096, PROCESSES_SHOWN = 256, LINE = 512, INDENT = 4 };

/* The description that a process gave of itself. */
struct process_shown {
    uint32_t process;
    uint64_t realtime, clock; /* the same moment */
    char name[65];
};

struct queue_shown {
    uint32_t process, queue;
    uint32_t number; /* of the queue pair; 0: not known yet */
    uint64_t time;
    unsigned reason; /* of its first error; 0: no error */
    char failed[LINE];
};

struct replayed {
    const char *path;
    const uint8_t *bytes;
    size_t length;
    long wanted;    /* number of the queue pair that is shown; -1: all */
    uint64_t until; /* the number of records to run; 0: all */
    bool quiet, as_json;
    uint64_t records;
    uint64_t latest; /* of the steps that were shown */
    struct process_shown processes[PROCESSES_SHOWN];
    unsigned process_count;
    struct queue_shown queues[QUEUES_SHOWN];
    unsigned queue_count;
    json_t *steps;
    size_t width;
};

static const struct process_shown *process_of(const struct replayed *replayed, uint32_t process)
{
    for (unsigned i = replayed->process_count; i; i--)
        if (replayed->processes[i - 1].process == process)
            return &replayed->processes[i - 1];
    return NULL;
}

static struct queue_shown *queue_of(struct replayed *replayed, const struct record *record)
{
    for (unsigned i = replayed->queue_count; i; i--)
        if (replayed->queues[i - 1].process == record->process && replayed->queues[i - 1].queue == record->queue)
            return &replayed->queues[i - 1];
    if (replayed->queue_count == QUEUES_SHOWN)
        return NULL;
    struct queue_shown *queue = &replayed->queues[replayed->queue_count++];
    queue->process = record->process;
    queue->queue = record->queue;
    return queue;
}

static void note_process(struct replayed *replayed, const struct record *record)
{
    if (replayed->process_count == PROCESSES_SHOWN)
        return;
    struct process_shown *process = &replayed->processes[replayed->process_count++];
    process->process = record->process;
    process->realtime = record->PROCESS.realtime;
    process->clock = record->PROCESS.clock;
    size_t length = record->length < sizeof process->name ? record->length : sizeof process->name - 1;
    memcpy(process->name, record->bytes, length);
    for (size_t i = 0; i < length; i++)
        if (process->name[i] < ' ' || process->name[i] > '~')
            process->name[i] = '?';
}

/* Nanoseconds since 1970. The processes share a clock. Records have the order in which they happened, so no step is
 * earlier than the step before it. */
static uint64_t wall_time(struct replayed *replayed, uint64_t now)
{
    const struct process_shown *process = replayed->process_count ? replayed->processes : NULL;
    uint64_t when = process ? process->realtime + (now - process->clock) : now;
    if (when > replayed->latest)
        replayed->latest = when;
    return replayed->latest;
}

static void show_time(uint64_t when, char *to, size_t size)
{
    time_t seconds = (time_t)(when / 1000000000);
    struct tm local = {0};
    char text[16];
    localtime_r(&seconds, &local);
    strftime(text, sizeof text, "%H:%M:%S", &local);
    snprintf(to, size, "%s.%06" PRIu64, text, when % 1000000000 / 1000);
}

static void show_step(struct replayed *replayed, const struct queue_shown *queue, const char *words)
{
    const struct process_shown *process = process_of(replayed, queue->process);
    uint64_t when = wall_time(replayed, queue->time);
    char time[32];
    if (replayed->as_json) {
        json_array_append_new(replayed->steps, json_pack("{s:f, s:i, s:i, s:o, s:I}", "time", (double)when / 1e9, "pid",
                                                         (int)queue->process, "qp", (int)queue->number, "words",
                                                         emit_text(words), "record", (json_int_t)replayed->records));
        return;
    }
    char line[LINE + 128];
    show_time(when, time, sizeof time);
    snprintf(line, sizeof line, "%s %s[%" PRIu32 "] qp 0x%" PRIx32 " %s", time, process ? process->name : "?",
             queue->process, queue->number, words);
    screen_wrap(stdout, replayed->width, 0, INDENT, line);
}

static void hear_queue(struct replayed *replayed, struct queue_shown *queue, const struct record *record)
{
    char words[LINE];
    if (record->kind == RECORD_CONFIGURE)
        queue->number = (uint32_t)record->CONFIGURE.number_of_qp;
    uint64_t when = replay_time(record);
    if (when)
        queue->time = when;
    replay_words(record, words, sizeof words);
    if (!queue->reason && replay_reason(record)) {
        queue->reason = replay_reason(record);
        snprintf(queue->failed, sizeof queue->failed, "%s", words);
    }
    if (*words && !replayed->quiet && (replayed->wanted < 0 || replayed->wanted == (long)queue->number))
        show_step(replayed, queue, words);
}

static bool hear(void *context, const struct record *record)
{
    struct replayed *replayed = context;
    replayed->records++;
    if (record->kind == RECORD_PROCESS)
        note_process(replayed, record);
    struct queue_shown *queue = record->queue ? queue_of(replayed, record) : NULL;
    if (queue)
        hear_queue(replayed, queue, record);
    return !replayed->until || replayed->records < replayed->until;
}

/* "", or why the recording was not run to its end. */
static void tell_fault(const struct replay_result *result, char *to, size_t size)
{
    *to = 0;
    if (*result->words)
        snprintf(to, size, "%s.", result->words);
    else if (result->fault == RECORD_CUT)
        snprintf(to, size,
                 "The recording ends within a record, at byte %zu: the process that wrote it, or its disk, ended then.",
                 result->at);
    else if (result->fault == RECORD_DAMAGED)
        snprintf(to, size, "The recording is damaged: no record begins at byte %zu.", result->at);
    else if (result->fault == RECORD_NOT_OURS)
        snprintf(to, size, "It is not a recording: it does not begin with \"" RECORDING_MAGIC "\".");
    else if (result->fault == RECORD_VERSION)
        snprintf(to, size,
                 "It has the form %" PRIu32 ", and this softverbs reads %d. The softverbs that wrote it reads it.",
                 result->version, RECORDING_VERSION);
}

static json_t *ends_as_json(const struct replayed *replayed)
{
    json_t *ends = json_array();
    for (unsigned i = 0; i < replayed->queue_count; i++) {
        const struct queue_shown *queue = &replayed->queues[i];
        const struct process_shown *process = process_of(replayed, queue->process);
        json_array_append_new(ends, json_pack("{s:i, s:o, s:i, s:i, s:o}", "pid", (int)queue->process, "program",
                                              emit_text(process ? process->name : ""), "qp", (int)queue->number,
                                              "reason", (int)queue->reason, "failed",
                                              queue->reason ? emit_text(queue->failed) : json_null()));
    }
    return ends;
}

static void show_ends(const struct replayed *replayed)
{
    for (unsigned i = 0; i < replayed->queue_count; i++) {
        const struct queue_shown *queue = &replayed->queues[i];
        const struct process_shown *process = process_of(replayed, queue->process);
        char line[LINE + 128];
        snprintf(line, sizeof line, "%s[%" PRIu32 "] qp 0x%" PRIx32 " failed first when it %s",
                 process ? process->name : "?", queue->process, queue->number, queue->failed);
        if (queue->reason)
            screen_wrap(stdout, replayed->width, 0, INDENT, line);
    }
}

static int tell(const struct replayed *replayed, const struct replay_result *result)
{
    char fault[LINE + 64];
    tell_fault(result, fault, sizeof fault);
    bool same = !result->differs && !*fault;
    if (replayed->as_json) {
        emit(json_pack("{s:b, s:I, s:i, s:o, s:o, s:o}", "same", same, "records", (json_int_t)result->records,
                       "queue_pairs", (int)result->queues, "wrong", *fault ? emit_text(fault) : json_null(), "ends",
                       ends_as_json(replayed), "steps", replayed->steps));
        return same ? EXIT_OK : EXIT_NEGATIVE;
    }
    show_ends(replayed);
    char line[LINE];
    snprintf(line, sizeof line,
             "%u queue pair%s, %" PRIu64 " records: each engine did what it did when it was recorded.", result->queues,
             result->queues == 1 ? "" : "s", result->records);
    if (same)
        screen_wrap(stdout, replayed->width, 0, INDENT, line);
    else
        complain("%s: %s", replayed->path, fault);
    return same ? EXIT_OK : EXIT_NEGATIVE;
}

/* Reports a queue pair that the recording does not have, as without steps this mistake would not be seen. */
static int tell_of_wanted(const struct replayed *replayed)
{
    if (replayed->wanted < 0)
        return EXIT_OK;
    for (unsigned i = 0; i < replayed->queue_count; i++)
        if (replayed->wanted == (long)replayed->queues[i].number)
            return EXIT_OK;
    return complain_and(EXIT_NEGATIVE, "%s has no queue pair 0x%lx%s; without --qp all queue pairs are shown.",
                        replayed->path, (unsigned long)replayed->wanted, replayed->until ? " in these records" : "");
}

/* ---- without payloads ---- */

/* Writes the recording without payloads, and with zeros for inline data. False: the rest can't be read. */
static bool strip(const struct replayed *replayed, FILE *to)
{
    static uint8_t bytes[RECORD_LONGEST];
    size_t at = RECORDING_HEAD, size;
    struct record record;
    fwrite(replayed->bytes, 1, RECORDING_HEAD, to);
    while (record_read(replayed->bytes + at, replayed->length - at, &record, &size) == RECORD_FINE) {
        memcpy(bytes, replayed->bytes + at, size);
        struct record shorter = record;
        shorter.bytes = bytes + (size - record.length);
        if (record.kind == RECORD_POST && record.POST.flags & IBV_SEND_INLINE)
            memset(bytes + (size - record.length), 0, record.length);
        size_t kept = record.length ? 1u + record.bytes[0] + (size_t)record.RECEIVE.outer : 0;
        if ((record.kind == RECORD_RECEIVE || record.kind == RECORD_HEAR) && kept <= record.length)
            shorter.length = (uint32_t)kept;
        uint8_t out[RECORD_LONGEST];
        fwrite(out, 1, record_write(&shorter, out), to);
        at += size;
    }
    return at == replayed->length;
}

static int write_stripped(const struct replayed *replayed, const char *path)
{
    uint32_t version;
    if (record_check_head(replayed->bytes, replayed->length, &version) != RECORD_FINE)
        return complain_and(EXIT_NEGATIVE, "%s is not a recording that this softverbs reads.", replayed->path);
    FILE *to = fopen(path, "we");
    bool whole = to && strip(replayed, to);
    if (!to || ferror(to) | fclose(to))
        return complain_and(EXIT_NEGATIVE, "%s can't be written: %s.", path, strerror(errno));
    if (!whole)
        complain("%s does not end with a whole record; %s has what is before it.", replayed->path, path);
    return whole ? EXIT_OK : EXIT_NEGATIVE;
}

/* ---- the command ---- */

static int run_again(struct replayed *replayed)
{
    struct replay_result result;
    replayed->steps = json_array();
    replayed->width = screen_width(stdout);
    bool opened = guard_begin_now();
    replay_run(replayed->bytes, replayed->length, hear, replayed, &result);
    guard_end(opened);
    if (fflush(stdout) || ferror(stdout))
        return complain_and(EXIT_NEGATIVE, "The replay can't be written: %s.", strerror(errno));
    int told = tell(replayed, &result);
    return told == EXIT_OK ? tell_of_wanted(replayed) : told;
}

static int with_file(struct replayed *replayed, const char *stripped)
{
    uint8_t *bytes;
    int error = pcap_read_file(replayed->path, &bytes, &replayed->length), result = EXIT_NEGATIVE;
    replayed->bytes = bytes;
    if (error)
        complain("%s can't be read: %s.", replayed->path, strerror(error));
    else if (!replayed->length)
        complain("%s is empty: no process wrote to it.", replayed->path);
    else
        result = stripped ? write_stripped(replayed, stripped) : run_again(replayed);
    free(bytes);
    return result;
}

static int replay(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {VALUED("qp", 'n'),   VALUED("until", 'u'), VALUED("strip", 's'),
                                            OPTION("ends", 'e'), OPTION("json", 'j'),  OPTIONS_END};
    static struct replayed replayed = {.wanted = -1};
    const char *stripped = NULL;
    uint64_t number;
    for (int option; (option = command_option(command, argc, argv, options)) != -1;) {
        if (option == 'n' && !text_number_or_hex(optarg, 0, 0xffffff, &number))
            return command_misused(command, "\"%s\" is not a number of a queue pair.", optarg);
        if (option == 'n')
            replayed.wanted = (long)number;
        if (option == 'u' && !text_number_or_hex(optarg, 1, UINT32_MAX, &number))
            return command_misused(command, "\"%s\" is not a number of records.", optarg);
        if (option == 'u')
            replayed.until = number;
        stripped = option == 's' ? optarg : stripped;
        replayed.quiet |= option == 'e';
        replayed.as_json |= option == 'j';
    }
    if (optind + 1 != argc)
        return command_misused(command, "It needs one recording.");
    replayed.path = argv[optind];
    return with_file(&replayed, stripped);
}

const struct command replay_command = {
    .name = "replay",
    .arguments = "[OPTIONS] FILE",
    .summary = "Run the queue pairs of a recording again, step by step",
    .help = "FILE is a recording of softverbs run --record FILE. The engines of its queue\n"
            "pairs run again on the recorded inputs, without the program, and must do the\n"
            "same.\n"
            "\n"
            "  --qp NUMBER       show the steps of this queue pair only\n"
            "  --until N         end after the N-th record\n"
            "  --ends            show no steps, only the first failure of each queue pair\n"
            "  --strip OUT       run nothing; write the recording without payloads to OUT,\n"
            "                    so that it can be given to others\n"
            "  --json            print a JSON value (docs/reference/json.md)\n"
            "\n"
            "Exit status: 0, or 1 when an engine did something else than in the recording,\n"
            "or the recording can't be read to its end.\n",
    .run = replay,
};
