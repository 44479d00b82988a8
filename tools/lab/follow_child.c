#include "lab/follow_child.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

#include "command.h"

static pid_t followed;

static void forward(int number)
{
    kill(followed, number);
}

int follow_child(pid_t child)
{
    static const int forwarded[] = {SIGTERM, SIGHUP};
    int how;
    followed = child;
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        sigaction(forwarded[i], &(struct sigaction){.sa_handler = forward}, NULL);
    while (waitpid(child, &how, 0) < 0)
        if (errno != EINTR)
            return EXIT_SELF;
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}
