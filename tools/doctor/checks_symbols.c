/* Checks whether our library has the symbols that the installed one and the libraries around it want. The dynamic
 * linker refuses a program over one symbol that is missing, wherever among its libraries it is. */
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "checks.h"
#include "place.h"
#include "symbols.h"

enum { NAMES_SHOWN = 3 };

struct names {
    char **items;
    size_t count, room;
};

/* Some names, for a sentence. */
struct shown {
    char text[400];
    unsigned count;
};

struct search {
    struct names ours;
    struct shown symbols;
    unsigned lacking; /* symbols that the library now looked at wants and ours lacks */
};

static void names_add(void *context, const char *symbol, const char *version)
{
    struct names *names = context;
    if (names->count == names->room) {
        size_t room = names->room ? names->room * 2 : 1024;
        char **items = reallocarray(names->items, room, sizeof *items);
        if (!items)
            return;
        names->items = items;
        names->room = room;
    }
    if (asprintf(&names->items[names->count], "%s@%s", symbol, version) >= 0)
        names->count++;
}

static int names_compare(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static void names_free(struct names *names)
{
    while (names->count)
        free(names->items[--names->count]);
    free(names->items);
}

static void show_name(struct shown *shown, const char *name)
{
    size_t length = strlen(shown->text);
    if (strstr(shown->text, name))
        return;
    if (shown->count++ < NAMES_SHOWN)
        snprintf(shown->text + length, sizeof shown->text - length, "%s%s", length ? ", " : "", name);
}

static const char *others(const struct shown *shown, char text[32])
{
    text[0] = '\0';
    if (shown->count > NAMES_SHOWN)
        snprintf(text, 32, " and %u more", shown->count - NAMES_SHOWN);
    return text;
}

/* Left out on purpose: IBVERBS_1.0 has the structures of before 2007, and drivers of that time register themselves. */
static bool is_left_out(const char *symbol, const char *version)
{
    return !strcmp(version, "IBVERBS_1.0") ||
           (!strcmp(symbol, "ibv_register_driver") && !strcmp(version, "IBVERBS_1.1"));
}

static void look_for(void *context, const char *symbol, const char *version)
{
    struct search *search = context;
    char name[256];
    const char *key = name;
    snprintf(name, sizeof name, "%s@%s", symbol, version);
    if (is_left_out(symbol, version) ||
        bsearch(&key, search->ours.items, search->ours.count, sizeof key, names_compare))
        return;
    search->lacking++;
    show_name(&search->symbols, name);
}

/* Counts the libraries beside the installed one that are linked with it; `failing` gets those that ours can't serve. */
static unsigned look_at_consumers(struct search *search, const char *installed, struct shown *failing)
{
    static const char *const patterns[] = {"libibverbs/*.so", "librdmacm.so.1", "libmlx4.so.1",      "libmlx5.so.1",
                                           "libefa.so.1",     "libhns.so.1",    "libmana.so.1",      "libionic.so.1",
                                           "libucs.so.0",     "libuct.so.0",    "ucx/libuct_*.so.0", "libfabric.so.1"};
    char pattern[512];
    unsigned looked = 0;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        glob_t found;
        snprintf(pattern, sizeof pattern, "%.*s%s", (int)(strrchr(installed, '/') + 1 - installed), installed,
                 patterns[i]);
        if (glob(pattern, 0, NULL, &found))
            continue;
        for (size_t j = 0; j < found.gl_pathc; j++) {
            search->lacking = 0;
            looked += !symbols_wanted(found.gl_pathv[j], "libibverbs.so.1", look_for, search);
            if (search->lacking)
                show_name(failing, strrchr(found.gl_pathv[j], '/') + 1);
        }
        globfree(&found);
    }
    return looked;
}

static enum verdict compare(struct search *search, const char *installed, char *say, size_t size)
{
    struct shown failing = {.count = 0};
    char more[32], more_failing[32];
    int error = symbols_defined(installed, look_for, search);
    unsigned looked = look_at_consumers(search, installed, &failing);
    if (error)
        snprintf(say, size, "%s can't be read: %s.", installed, strerror(error));
    else if (!search->symbols.count)
        snprintf(say, size, "Ours has every symbol of %s, and all that %u libraries beside it want.", installed,
                 looked);
    else if (!failing.count)
        snprintf(
            say, size,
            "Ours lacks %s%s of %s; a program that needs them won't start. None of the %u libraries beside it does. A "
            "newer softverbs may have them.",
            search->symbols.text, others(&search->symbols, more), installed, looked);
    else
        snprintf(say, size,
                 "Ours lacks %s%s, so these don't load, nor do programs that are linked with them: %s%s. A newer "
                 "softverbs may "
                 "have them.",
                 search->symbols.text, others(&search->symbols, more), failing.text, others(&failing, more_failing));
    return search->symbols.count ? VERDICT_WARNING : VERDICT_OK;
}

enum verdict check_symbols(char *say, size_t size)
{
    char directory[PLACE_PATH_MAX], path[PLACE_PATH_MAX + 32], installed[256];
    struct search search = {.lacking = 0};
    if (place_libraries(directory, say, size))
        return VERDICT_PROBLEM;
    snprintf(path, sizeof path, "%s/libibverbs.so.1", directory);
    if (place_installed(installed, sizeof installed), !*installed)
        return SAY_AND(VERDICT_OK, say, size, "Nothing to compare with, since no libibverbs.so.1 is installed.");
    if (symbols_defined(path, names_add, &search.ours)) {
        names_free(&search.ours);
        return SAY_AND(VERDICT_PROBLEM, say, size, "%s can't be read.", path);
    }
    qsort(search.ours.items, search.ours.count, sizeof *search.ours.items, names_compare);
    enum verdict verdict = compare(&search, installed, say, size);
    names_free(&search.ours);
    return verdict;
}
