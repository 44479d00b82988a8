#include "sweep/found.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print/junit.h"

const char *const sweep_words[SWEEP_KINDS] = {"calls", "completions", "events"};

struct run {
    enum sweep_kind kind;
    unsigned nth;
    enum sweep_outcome outcome;
    int value;
    char fault[ATTEMPT_FAULT];
};

struct found {
    FILE *file; /* NULL: no file */
    struct run *runs;
    size_t count;
};

/* Whether the call only gives something back: its failure loses nothing, as the end of the process does the same. */
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
    return (run->outcome == SWEEP_ENDS_BADLY && run->kind != SWEEP_EVENTS) ||
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

/* Lines that the sweep did not write are left alone. */
static void read_runs(struct found *found)
{
    char line[ATTEMPT_FAULT + 64];
    while (fgets(line, sizeof line, found->file)) {
        struct run run;
        unsigned kind, outcome;
        int used = 0;
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%u %u %u %d %n", &kind, &run.nth, &outcome, &run.value, &used) != 4 || !used ||
            kind >= SWEEP_KINDS || outcome >= SWEEP_OUTCOMES)
            continue;
        run.kind = (enum sweep_kind)kind;
        run.outcome = (enum sweep_outcome)outcome;
        snprintf(run.fault, sizeof run.fault, "%s", line + used);
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

/* The first line says whose runs follow. False: another program's, or it can't be read. */
static bool take_title(FILE *file, char *const *program)
{
    char *title = NULL, *line = NULL;
    size_t size = 0, room = 0;
    FILE *text = open_memstream(&title, &size);
    if (!text)
        return false;
    fputs("softverbs sweep", text);
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

struct found *found_open(const char *path, char *const *program)
{
    struct found *found = calloc(1, sizeof *found);
    if (!found || !path)
        return found;
    found->file = fopen(path, "a+e");
    if (!found->file || !take_title(found->file, program)) {
        int error = errno;
        found_close(found);
        errno = error;
        return NULL;
    }
    read_runs(found);
    fseek(found->file, 0, SEEK_END);
    return found;
}

unsigned found_last(const struct found *found, enum sweep_kind kind)
{
    unsigned last = 0;
    for (size_t i = 0; i < found->count; i++)
        if (found->runs[i].kind == kind && found->runs[i].nth > last)
            last = found->runs[i].nth;
    return last;
}

static void describe(const struct run *run, char *text, size_t size)
{
    snprintf(text, size, "The program %s", sweep_outcomes[run->outcome]);
    size_t used = strlen(text);
    if (run->outcome == SWEEP_CRASHES && used < size)
        snprintf(text + used, size - used, " (signal %d, %s)", run->value, strsignal(run->value));
}

void found_add(struct found *found, enum sweep_kind kind, unsigned nth, const struct attempt *attempt)
{
    struct run run = {.kind = kind, .nth = nth, .outcome = attempt->outcome, .value = attempt->value};
    char text[128];
    memcpy(run.fault, attempt->fault, sizeof run.fault);
    keep(found, &run);
    if (found->file) {
        fprintf(found->file, "%u %u %u %d %s\n", kind, nth, run.outcome, run.value, run.fault);
        fflush(found->file);
    }
    describe(&run, text, sizeof text);
    if (!is_borne(&run))
        printf("%s %u: %s. %s.\n", sweep_words[kind], nth, run.fault, text);
    fflush(stdout);
}

bool found_conclude(const struct found *found)
{
    size_t worse = 0;
    for (size_t i = 0; i < found->count; i++)
        worse += !is_borne(&found->runs[i]);
    printf("%zu faults, %zu unreported by the program.\n", found->count, worse);
    return !worse;
}

/* --- JUnit */

static void write_run(FILE *file, const struct run *run)
{
    char class[64], name[ATTEMPT_FAULT + 32], text[128];
    describe(run, text, sizeof text);
    snprintf(class, sizeof class, "softverbs.sweep.%s", sweep_words[run->kind]);
    snprintf(name, sizeof name, "%u %s", run->nth, run->fault);
    junit_case(file, class, name, is_borne(run), is_borne(run) ? NULL : text);
}

bool found_write_junit(const struct found *found, const char *path)
{
    size_t worse = 0;
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    for (size_t i = 0; i < found->count; i++)
        worse += !is_borne(&found->runs[i]);
    junit_begin(file, "softverbs sweep", found->count, worse);
    for (size_t i = 0; i < found->count; i++)
        write_run(file, &found->runs[i]);
    junit_end(file);
    bool written = !ferror(file);
    return !fclose(file) && written;
}
