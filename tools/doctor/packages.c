#include "packages.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

const char packages_os_release[] = "/etc/os-release";

enum manager {
#define MANAGER(name, install, systems) MANAGER_##name,
#include "packages.def"
    MANAGERS
};

static const struct {
    const char *install, *systems;
} managers[] = {
#define MANAGER(name, install, systems) {install, systems},
#include "packages.def"
};

static const struct {
    enum packages_kind kind;
    const char *what, *use, *package[MANAGERS];
} packages[] = {
#define PACKAGE(kind, what, use, ...) {PACKAGES_##kind, what, use, {__VA_ARGS__}},
#include "packages.def"
};

enum { PACKAGES = sizeof packages / sizeof *packages };

static bool has_word(const char *words, const char *word, size_t length)
{
    for (const char *at = words; (at = strstr(at, word)); at++) {
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    }
    return false;
}

/* The manager of the first of these words (the value of ID or ID_LIKE) that is known. */
static enum manager manager_of_words(char *words)
{
    char *rest;
    for (char *word = strtok_r(words, " \t\r\n\"'", &rest); word; word = strtok_r(NULL, " \t\r\n\"'", &rest))
        for (enum manager manager = 0; manager < MANAGERS; manager++)
            if (has_word(managers[manager].systems, word, strlen(word)))
                return manager;
    return MANAGERS;
}

/* ID precedes ID_LIKE, whatever their order in the file. */
static enum manager find_manager(const char *os_release)
{
    char line[512];
    enum manager own = MANAGERS, like = MANAGERS;
    FILE *file = fopen(os_release, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (!strncmp(line, "ID=", 3))
            own = manager_of_words(line + 3);
        else if (!strncmp(line, "ID_LIKE=", 8))
            like = manager_of_words(line + 8);
    }
    if (file)
        fclose(file);
    return own < MANAGERS ? own : like;
}

/* Appends to a list in words; what does not fit is left out. */
static void append(char *list, size_t size, const char *between, const char *text)
{
    size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used ? between : "", text);
}

struct lack {
    char names[512]; /* what is missing */
    char line[256];  /* the packages, each once */
    char none[256];  /* what the distribution has no package for */
};

static void add_lack(struct lack *lack, unsigned i, enum manager manager)
{
    const char *package = packages[i].package[manager];
    append(lack->names, sizeof lack->names, ", ", packages[i].use);
    if (!package)
        append(lack->none, sizeof lack->none, ", ", packages[i].what);
    else if (!has_word(lack->line, package, strlen(package)))
        append(lack->line, sizeof lack->line, " ", package);
}

unsigned packages_lacking(const char *os_release, packages_present *present, char *say, size_t size)
{
    struct lack lack = {"", "", ""};
    enum manager manager = find_manager(os_release), names = manager < MANAGERS ? manager : MANAGER_APT;
    unsigned count = 0;
    for (unsigned i = 0; i < PACKAGES; i++) {
        if (present(packages[i].kind, packages[i].what))
            continue;
        add_lack(&lack, i, names);
        count++;
    }
    if (!count) {
        snprintf(say, size, "The programs and libraries that go with softverbs are installed.");
        return 0;
    }
    snprintf(say, size, "Not installed, and not needed by softverbs itself: %s.", lack.names);
    size_t used = strlen(say);
    if (*lack.line && manager < MANAGERS)
        snprintf(say + used, size - used, " As root: %s %s.", managers[manager].install, lack.line);
    else if (*lack.line)
        snprintf(say + used, size - used, " The package manager of this system is not known; Debian's packages are %s.",
                 lack.line);
    used = strlen(say);
    if (*lack.none)
        snprintf(say + used, size - used, " This distribution has no package of %s.", lack.none);
    return count;
}

void packages_of_library(const char *os_release, const char *soname, char *line, size_t size)
{
    enum manager manager = find_manager(os_release);
    *line = 0;
    for (unsigned i = 0; manager < MANAGERS && i < PACKAGES; i++)
        if (packages[i].kind == PACKAGES_LIBRARY && !strcmp(packages[i].what, soname) && packages[i].package[manager])
            snprintf(line, size, "%s %s", managers[manager].install, packages[i].package[manager]);
}

static bool is_in_path(const char *program)
{
    char file[PATH_MAX];
    return program_find(program, file);
}

static bool is_included(const char *header)
{
    char file[PATH_MAX];
    snprintf(file, sizeof file, "/usr/include/%s", header);
    return !access(file, R_OK);
}

static bool is_loaded(const char *soname)
{
    void *library = dlopen(soname, RTLD_LAZY | RTLD_LOCAL);
    if (library)
        dlclose(library);
    return library;
}

bool packages_are_here(enum packages_kind kind, const char *what)
{
    static bool (*const here[])(const char *) = {
        [PACKAGES_PROGRAM] = is_in_path, [PACKAGES_HEADER] = is_included, [PACKAGES_LIBRARY] = is_loaded};
    return here[kind](what);
}
