#include "start/become.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

/* "--adverse seed=7" makes a program of the list. */
static const char *cure_of_missing(const char *name)
{
    return strchr(name, '=') ? " Write the list of --adverse after \"=\", as in --adverse=seed=7." : "";
}

int become(char **argv)
{
    execvp(argv[0], argv);
    int error = errno;
    if (error != ENOENT)
        complain("\"%s\" can't be executed: %s.", argv[0], strerror(error));
    else if (!access(argv[0], F_OK) && strchr(argv[0], '/'))
        complain("\"%s\" can't be executed: the interpreter that it names does not exist.", argv[0]);
    else
        complain("There is no program \"%s\"%s.%s", argv[0], strchr(argv[0], '/') ? "" : " in $PATH",
                 cure_of_missing(argv[0]));
    return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}
