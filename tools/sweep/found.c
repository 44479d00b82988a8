#include "sweep/found.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print/junit.h"

const char *const sweep_words[SWEEP_KINDS] = {"calls", "completions", "events"};

#define NOWHERE "-" /* the place is not known */

struct run {
    enum sweep_kind kind;
    uint32_t place;
    unsigned nth, count;
    char where[CALLER_WHERE];
    enum sweep_outcome outcome;
    int value;
    char fault[ATTEMPT_FAULT];
};

struct found {
    FILE *file; /* NULL: no file */
    struct run *runs;
    size_t count;
};

/* Returns whether the call only gives something back: its failure loses nothing, as the process's end does the same. */
static bool is_release(const char *fault)
{
    static const char *const names[] = {"ibv_close_",   "ibv_dealloc_", "ibv_dereg_",
                                        "ibv_destroy_", "ibv_free_",    "rdma_destroy_"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(fault, names[i], strlen(names[i])))
            return true;
    return false;
}

/* Returns whether the program bore the fault. An extra event is no fault: the program must still do its work. */
static bool is_borne(const struct run *run)
{
    bool may_succeed = run->kind == SWEEP_EVENTS || is_release(run->fault);
    return (run->outcome == SWEEP_ENDS_BADLY && run->kind != SWEEP_EVENTS) || run->outcome == SWEEP_GOES_ON ||
           (run->outcome == SWEEP_ENDS_WELL && may_succeed);
}

static bool keep(struct found *found, const struct run *run)
{
    struct run *runs = realloc(found->runs, (found->count + 1) * sizeof *runs);
    if (!runs)
        return false;
    found->runs = runs;
    runs[found->count++] = *run;
    return true;
}

/* Reads a line. False: the sweep did not write it. */
static bool read_run(const char *line, struct run *run)
{
    unsigned kind, outcome;
    int used = 0;
    if (sscanf(line, "%u 0x%" SCNx32 " %u/%u %47s %u %d %n", &kind, &run->place, &run->nth, &run->count, run->where,
               &outcome, &run->value, &used) != 7 ||
        !used || kind >= SWEEP_KINDS || outcome >= SWEEP_OUTCOMES)
        return false;
    run->kind = (enum sweep_kind)kind;
    run->outcome = (enum sweep_outcome)outcome;
    snprintf(run->fault, sizeof run->fault, "%s", line + used);
    return true;
}

/* Lines that the sweep did not write are left alone. */
static void read_runs(struct found *found)
{
    char line[ATTEMPT_FAULT + 160];
    while (fgets(line, sizeof line, found->file)) {
        struct run run = {0};
        line[strcspn(line, "\n")] = 0;
        if (read_run(line, &run))
            keep(found, &run);
    }
}

void found_close(struct found *found)
{
    if (found->file)
        fclose(found->file);
    free(found->runs);
    free(found);
}

/* Checks the first line, which names the program and the kind of sweep, or writes it to an empty file. False: it names
 * others, or the file can't be used. */
static bool take_title(FILE *file, char *const *program, bool around)
{
    char *title = NULL, *line = NULL;
    size_t size = 0, room = 0;
    FILE *text = open_memstream(&title, &size);
    if (!text)
        return false;
    fputs(around ? "softverbs sweep --around" : "softverbs sweep", text);
    for (; *program; program++)
        fprintf(text, " %s", *program);
    bool fits = !fclose(text);
    for (char *end = title; fits && (end = strchr(end, '\n'));)
        *end = ' ';
    rewind(file);
    ssize_t length = getline(&line, &room, file);
    if (length < 0 && !ferror(file))
        fits = fits && fprintf(file, "%s\n", title) > 0 && !fflush(file);
    else
        fits = fits && length == (ssize_t)size + 1 && !strncmp(line, title, size);
    if (!fits)
        errno = EEXIST;
    free(title);
    free(line);
    return fits;
}

struct found *found_open(const char *path, char *const *program, bool around)
{
    struct found *found = calloc(1, sizeof *found);
    if (!found || !path)
        return found;
    found->file = fopen(path, "a+e");
    if (!found->file || !take_title(found->file, program, around)) {
        int error = errno;
        found_close(found);
        errno = error;
        return NULL;
    }
    read_runs(found);
    fseek(found->file, 0, SEEK_END);
    return found;
}

bool found_has(const struct found *found, const struct fault *fault)
{
    size_t length = strlen(fault->call);
    for (size_t i = 0; i < found->count; i++) {
        const struct run *run = &found->runs[i];
        if (run->kind == fault->kind && run->place == fault->place && run->nth == fault->nth &&
            (fault->kind != SWEEP_CALLS ||
             (!strncmp(run->fault, fault->call, length) && strchr(" :", run->fault[length]))))
            return true;
    }
    return false;
}

/* "calls at pingpong+0x1234, 1 of 20" */
static void name_fault(const struct run *run, char *text, size_t size)
{
    bool known = *run->where && strcmp(run->where, NOWHERE) != 0;
    snprintf(text, size, "%s%s%s, %u of %u", sweep_words[run->kind], known ? " at " : "", known ? run->where : "",
             run->nth, run->count);
}

static void describe(const struct run *run, char *text, size_t size)
{
    snprintf(text, size, "The program %s", sweep_outcomes[run->outcome]);
    size_t used = strlen(text);
    if (run->outcome == SWEEP_CRASHES && used < size)
        snprintf(text + used, size - used, " (signal %d, %s)", run->value, strsignal(run->value));
}

/* Replaces blanks, which would end the word in the file. */
static void take_where(struct run *run, const struct fault *fault)
{
    snprintf(run->where, sizeof run->where, "%s", *fault->where ? fault->where : NOWHERE);
    for (char *blank = run->where; (blank = strpbrk(blank, " \t\n"));)
        *blank = '_';
}

void found_add(struct found *found, const struct fault *fault, const struct attempt *attempt)
{
    struct run run = {.kind = fault->kind,
                      .place = fault->place,
                      .nth = fault->nth,
                      .count = fault->count,
                      .outcome = attempt->outcome,
                      .value = attempt->value};
    char text[128], name[128];
    snprintf(run.fault, sizeof run.fault, "%s", attempt->fault);
    take_where(&run, fault);
    if (!keep(found, &run))
        return;
    if (found->file) {
        fprintf(found->file, "%u 0x%" PRIx32 " %u/%u %s %u %d %s\n", run.kind, run.place, run.nth, run.count, run.where,
                run.outcome, run.value, run.fault);
        fflush(found->file);
    }
    describe(&run, text, sizeof text);
    name_fault(&run, name, sizeof name);
    if (!is_borne(&run))
        printf("%s: %s. %s.\n", name, run.fault, text);
    fflush(stdout);
}

static size_t count_worse(const struct found *found)
{
    size_t worse = 0;
    for (size_t i = 0; i < found->count; i++)
        worse += !is_borne(&found->runs[i]);
    return worse;
}

bool found_conclude(const struct found *found)
{
    size_t worse = count_worse(found), other = 0;
    for (size_t i = 0; i < found->count; i++)
        other += found->runs[i].outcome == SWEEP_GOES_ON;
    if (other)
        printf("The program went on another way after %zu fault%s.\n", other, other == 1 ? "" : "s");
    printf("%zu faults, %zu unreported by the program.\n", found->count, worse);
    fflush(stdout);
    return !worse;
}

/* --- JUnit */

static void write_run(FILE *file, const struct run *run)
{
    char class[64], at[128], name[ATTEMPT_FAULT + 136], text[128];
    describe(run, text, sizeof text);
    snprintf(class, sizeof class, "softverbs.sweep.%s", sweep_words[run->kind]);
    name_fault(run, at, sizeof at);
    snprintf(name, sizeof name, "%s (%s)", run->fault, at);
    junit_case(file, class, name, is_borne(run), is_borne(run) ? NULL : text);
}

bool found_write_junit(const struct found *found, const char *path)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    junit_begin(file, "softverbs sweep", found->count, count_worse(found));
    for (size_t i = 0; i < found->count; i++)
        write_run(file, &found->runs[i]);
    junit_end(file);
    bool written = !ferror(file);
    return !fclose(file) && written;
}
