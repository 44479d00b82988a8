#include "start/selftest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "place.h"
#include "version.h"

enum { WORDS = 16 };

static const char *const causes[] = {
#define SELFTEST(name, ...) name,
#include "start/selftest.def"
};

/* The paths of this command and of the program, and the words of a child. */
struct selftest {
    char self[PLACE_PATH_MAX], program[PLACE_PATH_MAX + 32];
    const char *device;
};

/* The standard error of the child is part of the report, too. */
static int run(char **words)
{
    int status = EXIT_SELF << 8;
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        dup2(STDOUT_FILENO, STDERR_FILENO);
        execv(words[0], words);
        _exit(EXIT_SELF);
    }
    if (child < 0)
        return complain_and(EXIT_SELF, "No process can be made: %s.", strerror(errno));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SELF;
}

/* Runs the cause with these options of "softverbs around"; the list ends in NULL. */
static int run_around(struct selftest *test, const char *cause, const char *const *options)
{
    const char *words[WORDS] = {test->self, "around"};
    unsigned count = 2;
    while (*options)
        words[count++] = *options++;
    words[count++] = "--";
    words[count++] = test->program;
    words[count++] = cause;
    words[count] = test->device;
    return run((char **)words);
}

static int find_paths(struct selftest *test)
{
    char directory[PLACE_PATH_MAX], why[512];
    if (place_self(test->self))
        return complain_and(EXIT_SELF, "The path of this command can't be found: %s.", strerror(errno));
    if (place_libraries(directory, why, sizeof why))
        return complain_and(EXIT_SELF, "%s", why);
    snprintf(test->program, sizeof test->program, "%s/softverbs-selftest", directory);
    if (access(test->program, X_OK))
        return complain_and(EXIT_SELF, "The program \"%s\" can't be run: %s.", test->program, strerror(errno));
    return 0;
}

/* The layers by themselves: nothing to find, and work that a rule turns into an error. */
static int check_layers(struct selftest *test)
{
    puts("\nWith the checker, which should be silent:");
    int status = run_around(test, "right", (const char *const[]){"--check=notes", NULL});
    puts("\nWith a rule that turns the completion:");
    const char *const rule[] = {"-q", "--inject", "when work, nth 1: complete RETRY_EXC_ERR, vendor 129", NULL};
    return run_around(test, "right", rule) || status;
}

int selftest_run(const char *device)
{
    struct selftest test = {.device = device};
    struct utsname kernel = {0};
    int status = find_paths(&test);
    if (status)
        return status;
    uname(&kernel);
    printf("softverbs %s (%s) around the libibverbs of this machine, %s %s, %s\n", VERSION, VERSION_SOURCE,
           kernel.sysname, kernel.release, kernel.machine);
    if (run_around(&test, "facts", (const char *const[]){"-q", NULL}))
        return EXIT_NEGATIVE;
    for (unsigned at = 0; at < sizeof causes / sizeof *causes; at++) {
        putchar('\n');
        status |= run_around(&test, causes[at], (const char *const[]){"-q", "--story", "-", NULL});
    }
    status = check_layers(&test) || status ? EXIT_NEGATIVE : EXIT_OK;
    puts(status ? "\nA part of the self-test has failed."
                : "\nThe self-test has come to its end. Reports of adapters are welcome.");
    return status;
}
