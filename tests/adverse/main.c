/* Runs the litmus tests of LITMUS_LIST: main [-THREADS] [TRIALS [NAME...]], all of them without a name. Each thread has
 * separate objects and its share of the trials. A line for each test: NAME VERDICT BEHAVIOUR SEEN TRIALS OUTCOME The
 * exit status is 1 when an outcome was seen that must never be. */
#include "litmus.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
    const char *name, *verdict, *behaviour, *outcome;
    bool (*run)(struct litmus *);
} rows[] = {
#define LITMUS(name, verdict, behaviour, outcome) {#name, #verdict, behaviour, outcome, litmus_##name},
#include LITMUS_LIST
};

static bool is_wanted(const struct row *row, int count, char **names)
{
    bool wanted = !count;
    for (int i = 0; i < count; i++)
        wanted |= !strcmp(names[i], row->name);
    return wanted;
}

struct runner {
    pthread_t thread;
    struct litmus litmus;
    const struct row *row;
    unsigned trials, seen;
};

static void *run(void *argument)
{
    struct runner *runner = argument;
    runner->seen = 0;
    for (unsigned i = 0; i < runner->trials; i++) {
        litmus_begin_trial(&runner->litmus);
        runner->seen += runner->row->run(&runner->litmus);
    }
    return NULL;
}

enum { RUNNERS_MOST = 64 };

static struct runner runners[RUNNERS_MOST];

static unsigned run_all(const struct row *row, unsigned threads, unsigned trials)
{
    unsigned seen = 0;
    for (unsigned i = 0; i < threads; i++) {
        runners[i].row = row;
        runners[i].trials = trials / threads + (i < trials % threads);
        MUST(!pthread_create(&runners[i].thread, NULL, run, &runners[i]));
    }
    for (unsigned i = 0; i < threads; i++) {
        MUST(!pthread_join(runners[i].thread, NULL));
        seen += runners[i].seen;
    }
    return seen;
}

static unsigned take_threads(int *count, char ***arguments)
{
    if (*count < 2 || *(*arguments)[1] != '-')
        return 1;
    int threads = atoi((*arguments)[1] + 1);
    MUST(threads > 0 && threads <= RUNNERS_MOST);
    ++*arguments;
    --*count;
    return (unsigned)threads;
}

int main(int count, char **arguments)
{
    unsigned threads = take_threads(&count, &arguments);
    unsigned trials = count > 1 ? (unsigned)atoi(arguments[1]) : 100;
    bool forbidden = false;
    for (unsigned i = 0; i < threads; i++)
        litmus_open(&runners[i].litmus);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        if (!is_wanted(row, count > 2 ? count - 2 : 0, arguments + 2))
            continue;
        unsigned seen = run_all(row, threads, trials);
        forbidden |= seen && !strcmp(row->verdict, "NEVER");
        printf("%s\t%s\t%s\t%u\t%u\t%s\n", row->name, row->verdict, *row->behaviour ? row->behaviour : "-", seen,
               trials, row->outcome);
        fflush(stdout);
    }
    for (unsigned i = 0; i < threads; i++)
        litmus_close(&runners[i].litmus);
    return forbidden;
}
