/* The checks of `softverbs doctor PROGRAM`. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "abi/unsupported.h"
#include "checks.h"
#include "config/settings.h"
#include "packages.h"
#include "place.h"
#include "profile/profile.h"
#include "program.h"
#include "symbols.h"

enum { SAY = 1024, LINKER_SECONDS = 10 };

struct patient {
    char path[PATH_MAX];
    struct program program;
    char ours[PLACE_PATH_MAX]; /* the directory of our libraries */
    char verbs[PATH_MAX], rdmacm[PATH_MAX],
        mlx5[PATH_MAX];   /* the libraries that the linker finds without LD_PRELOAD; "": not linked with it */
    char named[PATH_MAX]; /* a libibverbs that it, or a library of it, names with its directory; "": no such library */
    char absent[SAY];     /* libraries that are not found */
    char line[256];       /* the command that installs one of them; "": not known */
    char direct[128];     /* libraries of it that drive queues without libibverbs; "": no such library */
    bool around;          /* for `softverbs around` */
};

/* --- which file it is */

/* Reads the interpreter in place of a script; for "env NAME" that is env, as another step is not taken. */
static bool read_program(struct patient *patient, const char *name)
{
    if (!program_find(name, patient->path)) {
        check_say(VERDICT_PROBLEM, "program", "There is no program \"%s\" that can be executed.", name);
        return false;
    }
    int error = program_read(patient->path, &patient->program);
    if (!error && *patient->program.script) {
        check_say(VERDICT_OK, "program", "%s is a script of %s%s; what follows is about that program.", patient->path,
                  patient->program.script,
                  patient->program.shell ? ", as it is text and names no interpreter (#!)" : "");
        snprintf(patient->path, sizeof patient->path, "%s", patient->program.script);
        error = program_read(patient->path, &patient->program);
    } else if (!error) {
        check_say(VERDICT_OK, "program", "%s is what \"softverbs %s\" would start.", patient->path,
                  patient->around ? "around" : "run");
    }
    if (error)
        check_say(VERDICT_PROBLEM, "program", "%s can't be looked at: %s.", patient->path, strerror(error));
    return !error;
}

/* --- whether it uses softverbs */

/* A linker that another user's file names is not executed, unless it is this command's, too. */
static bool is_own_linker(const char *interpreter)
{
    struct program self;
    return !program_read("/proc/self/exe", &self) && !strcmp(self.interpreter, interpreter);
}

static bool check_kind(const struct patient *patient)
{
    const struct program *program = &patient->program;
    if (program->foreign)
        check_say(VERDICT_PROBLEM, "linking",
                  "It is of another architecture than this softverbs: it needs one that was built for that.");
    else if (!*program->interpreter)
        check_say(VERDICT_PROBLEM, "linking",
                  program->go
                      ? "It is a static program in Go: it loads no library and calls the kernel by itself, so it never "
                        "meets softverbs. Build it with cgo and libibverbs.so (CGO_ENABLED=1); \"softverbs sysfs DIR\" "
                        "writes the files of /sys/class/infiniband for it."
                      : "It is static: it loads no library, so it never meets softverbs. Link it with libibverbs.so; "
                        "\"softverbs sysfs DIR\" writes the files of /sys/class/infiniband for it.");
    else if (!is_own_linker(program->interpreter))
        check_say(
            VERDICT_PROBLEM, "linking",
            "It is for another C library or dynamic linker (%s) than this softverbs: build softverbs with that, too.",
            program->interpreter);
    else {
        check_say(VERDICT_OK, "linking", "It is linked dynamically (%s).", program->interpreter);
        return true;
    }
    return false;
}

/* Warns of Go, whose packages make system calls without libc. */
static void check_go(const struct patient *patient)
{
    if (patient->program.go)
        check_say(VERDICT_WARNING, "go",
                  "It is in Go, which opens files without libc: verbs that it calls by cgo work, but it sees neither "
                  "/dev/infiniband nor /sys/class/infiniband. \"softverbs sysfs DIR\" writes these files of /sys.");
}

/* The linker ignores LD_LIBRARY_PATH where the program gets more rights than the user that starts it. */
static void check_rights(const struct patient *patient)
{
    const char *what = program_rights(patient->path);
    if (what)
        check_say(VERDICT_PROBLEM, "rights",
                  "It is %s, so the linker ignores what \"softverbs %s\" sets: try a copy of it without that right, or "
                  "start it as its owner.",
                  what, patient->around ? "around" : "run");
    else
        check_say(VERDICT_OK, "rights", "It gets no other rights than you have.");
}

/* --- what will be loaded */

/* Takes a line without an arrow: the library is named with its directory, so that it is not searched for. */
static void note_path(struct patient *patient, const char *line)
{
    char path[PATH_MAX];
    const char *file = sscanf(line, " %4095s", path) == 1 ? strrchr(path, '/') : NULL;
    if (file && !strncmp(file, "/libibverbs.so", sizeof "/libibverbs.so" - 1))
        snprintf(patient->named, sizeof patient->named, "%s", path);
}

static void note_direct(struct patient *patient, const char *name)
{
    size_t used = strlen(patient->direct);
    if (!strcmp(name, "libmlx5.so.1") || !strcmp(name, "libefa.so.1") || !strcmp(name, "libmlx4.so.1"))
        snprintf(patient->direct + used, sizeof patient->direct - used, "%s%s", used ? ", " : "", name);
}

static void note_library(struct patient *patient, const char *line)
{
    char name[256], path[PATH_MAX] = "";
    if (sscanf(line, " %255s => %4095[^\n]", name, path) < 2) {
        note_path(patient, line);
        return;
    }
    note_direct(patient, name);
    char *address = strstr(path, " (0x");
    if (address)
        *address = 0;
    size_t used = strlen(patient->absent);
    if (!strcmp(path, "not found")) {
        snprintf(patient->absent + used, sizeof patient->absent - used, "%s%s", used ? ", " : "", name);
        if (!*patient->line)
            packages_of_library(packages_os_release, name, patient->line, sizeof patient->line);
    } else if (!strcmp(name, "libibverbs.so.1"))
        snprintf(patient->verbs, sizeof patient->verbs, "%s", path);
    else if (!strcmp(name, "librdmacm.so.1"))
        snprintf(patient->rdmacm, sizeof patient->rdmacm, "%s", path);
    else if (!strcmp(name, "libmlx5.so.1"))
        snprintf(patient->mlx5, sizeof patient->mlx5, "%s", path);
}

/* Becomes the linker, which only lists libraries, as for ldd(1). A damaged file could keep it busy for ever. */
static void become_linker(const struct patient *patient, int out)
{
    const char *old = getenv("LD_LIBRARY_PATH");
    char path[2 * PLACE_PATH_MAX + PATH_MAX];
    int length = profile_is_mlx5(setting_profile()) ? snprintf(path, sizeof path, "%s/mlx5:", patient->ours) : 0;
    snprintf(path + length, sizeof path - (size_t)length, old && *old ? "%s:%s" : "%s", patient->ours, old);
    setrlimit(RLIMIT_CPU, &(struct rlimit){LINKER_SECONDS, LINKER_SECONDS});
    if ((!patient->around && setenv("LD_LIBRARY_PATH", path, 1)) || setenv("LD_TRACE_LOADED_OBJECTS", "1", 1) ||
        unsetenv("LD_PRELOAD") || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
        _exit(127);
    execl(patient->program.interpreter, patient->program.interpreter, patient->path, (char *)NULL);
    _exit(127);
}

static bool list_libraries(struct patient *patient)
{
    int ends[2], status = 0;
    char line[PATH_MAX + 512];
    if (pipe(ends))
        return false;
    pid_t child = fork();
    if (!child)
        become_linker(patient, ends[1]);
    close(ends[1]);
    FILE *list = fdopen(ends[0], "r");
    while (list && fgets(line, sizeof line, list))
        note_library(patient, line);
    if (list)
        fclose(list);
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) != 127;
}

static bool is_ours(const struct patient *patient, const char *path)
{
    char real[PATH_MAX];
    size_t length = strlen(patient->ours);
    return realpath(path, real) && !strncmp(real, patient->ours, length) && real[length] == '/';
}

/* The linker does not search for a library that is loaded already. */
static void check_rpath(const struct patient *patient)
{
    const char *rpath = patient->program.rpath;
    check_say(VERDICT_OK, "libibverbs",
              "It will load ours, %s/libibverbs.so.1, as that is preloaded (LD_PRELOAD). By itself, and with \"run "
              "--no-paths\", "
              "it would load %s: %s has an RPATH%s%s%s, which is searched before LD_LIBRARY_PATH.",
              patient->ours, patient->verbs, *rpath ? "it" : "a library of it", *rpath ? " (" : "", rpath,
              *rpath ? ")" : "");
}

static void check_verbs(const struct patient *patient)
{
    if (*patient->named)
        check_say(
            VERDICT_WARNING, "libibverbs",
            "It names %s with its directory, so that is loaded, too. The functions that it is linked with come from "
            "ours, which is preloaded (LD_PRELOAD) and searched first; functions that it looks up (dlsym) may not.",
            patient->named);
    else if (!*patient->verbs)
        check_say(
            VERDICT_WARNING, "libibverbs",
            "It is not linked with libibverbs.so.1, nor is a library of it. If it loads it later (dlopen), by its name "
            "alone, it gets ours; by a path, the library at that path.");
    else if (is_ours(patient, patient->verbs))
        check_say(VERDICT_OK, "libibverbs", "It will load ours, %s, which LD_LIBRARY_PATH leads to.", patient->verbs);
    else
        check_rpath(patient);
}

/* Says of a program of libmlx5 which one it gets. */
static void check_mlx5(const struct patient *patient)
{
    if (!*patient->mlx5 || patient->around)
        return;
    if (is_ours(patient, patient->mlx5))
        check_say(VERDICT_OK, "libmlx5", "It will load ours, %s.", patient->mlx5);
    else
        check_say(VERDICT_OK, "libmlx5",
                  "It will load %s, which finds no device of its own here. With a profile and the word mlx5, as in "
                  "\"--profile connectx-7-roce,mlx5\", it loads ours.",
                  patient->mlx5);
}

static void check_libraries(struct patient *patient)
{
    if (!list_libraries(patient)) {
        check_say(VERDICT_WARNING, "libraries", "The dynamic linker %s can't list its libraries.",
                  patient->program.interpreter);
        return;
    }
    if (*patient->absent)
        check_say(VERDICT_PROBLEM, "libraries", "It won't start, since these are not installed: %s.%s%s%s",
                  patient->absent, *patient->line ? " As root: " : "", patient->line, *patient->line ? "." : "");
    if (patient->around)
        check_around(patient->verbs, patient->named, patient->direct);
    else
        check_verbs(patient);
    check_mlx5(patient);
    if (*patient->rdmacm && !patient->around)
        check_say(VERDICT_OK, "librdmacm",
                  "It will load %s, which stays the distribution's; softverbs serves its connections.",
                  patient->rdmacm);
}

/* --- what is not there for it */

struct misses {
    const char *symbol; /* the symbol that is looked for */
    const char *why;
    char text[SAY];
};

static void compare_name(const char *name, const char *why, void *context)
{
    struct misses *misses = context;
    if (!strcmp(name, misses->symbol))
        misses->why = why;
}

static void note_miss(void *context, const char *symbol, const char *version)
{
    struct misses *misses = context;
    size_t used = strlen(misses->text);
    misses->symbol = symbol;
    misses->why = NULL;
    unsupported_each(true, compare_name, misses);
    if (misses->why)
        snprintf(misses->text + used, sizeof misses->text - used, "%s%s", used ? ", " : "", symbol);
}

static void check_misses(const struct patient *patient)
{
    struct misses misses = {.text = ""};
    if (symbols_wanted(patient->path, "libibverbs.so.1", note_miss, &misses))
        return; /* it has no versioned symbols at all */
    if (*misses.text)
        check_say(VERDICT_WARNING, "functions", "It calls functions that answer EOPNOTSUPP here: %s.", misses.text);
    else if (*patient->verbs)
        check_say(VERDICT_OK, "functions", "Every function of libibverbs that it is linked with is there.");
}

void check_program(const char *name, bool around)
{
    char why[512];
    struct patient *patient = calloc(1, sizeof *patient);
    if (!patient)
        return;
    patient->around = around;
    if (place_libraries(patient->ours, why, sizeof why))
        check_say(VERDICT_PROBLEM, "library", "%s", why);
    else if (read_program(patient, name) && check_kind(patient)) {
        check_rights(patient);
        check_go(patient);
        check_libraries(patient);
        if (!around)
            check_misses(patient);
    }
    free(patient);
}
