#include "start/told.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/settings.h"
#include "command.h"
#include "lab/follow_child.h"
#include "print/screen.h"
#include "why/story.h"

enum { PATH = 4096 };

static void print_stories(const char *path)
{
    int silent = 0;
    size_t i;
    json_t *story,
        *stories =
            story_collect(&(struct story_question){.from = (const char *const[]){path, NULL}, .silent = &silent});
    fflush(stdout);
    json_array_foreach (stories, i, story)
        story_print(stderr, story);
    json_decref(stories);
}

static bool make_file(char path[PATH])
{
    const char *directory = getenv("TMPDIR");
    snprintf(path, PATH, "%s/softverbs-story-XXXXXX", directory && *directory ? directory : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0)
        complain("The file of the stories, \"%s\", can't be made: %s.", path, strerror(errno));
    else
        close(fd);
    return fd >= 0;
}

int told_run(int (*start)(char **), char **program)
{
    char path[PATH];
    if (!make_file(path) || setenv(setting_variable(SETTING_STORY), path, 1))
        return EXIT_SELF;
    pid_t child = fork();
    if (!child)
        _exit(start(program));
    int status =
        child < 0 ? complain_and(EXIT_SELF, "No process can be made: %s.", strerror(errno)) : follow_child(child);
    print_stories(path);
    unlink(path);
    return status;
}
