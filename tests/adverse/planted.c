/* A program with a mistake of LITMUS_LIST: planted [TRIALS [NAME...]]. It makes what the litmus tests of these names
 * are about, and ends with 1 when each of them was seen at least once; with names such as 3:L3, it makes the mistake in
 * one of three runs only, by chance. Without a name it makes no mistake. */
#include "litmus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const struct row {
    const char *name;
    bool (*run)(struct litmus *);
} rows[] = {
#define LITMUS(name, verdict, behaviour, outcome) {#name, litmus_##name},
#include LITMUS_LIST
};

static const struct row *find(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    MUST(!"a name");
    return NULL;
}

static bool is_seen(struct litmus *litmus, const char *name, int trials)
{
    bool seen = false;
    uint32_t chance;
    const char *colon = strchr(name, ':');
    MUST(getrandom(&chance, sizeof chance, 0) == sizeof chance);
    if (colon && chance % (unsigned)atoi(name))
        return false;
    for (int i = 0; i < trials && !seen; i++) {
        litmus_begin_trial(litmus);
        seen = find(colon ? colon + 1 : name)->run(litmus);
    }
    return seen;
}

int main(int count, char **arguments)
{
    int trials = count > 1 ? atoi(arguments[1]) : 1;
    bool seen = count > 2;
    struct litmus litmus;
    litmus_open(&litmus);
    for (int i = 2; i < count; i++)
        seen &= is_seen(&litmus, arguments[i], trials);
    litmus_close(&litmus);
    return seen;
}
