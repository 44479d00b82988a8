/* Two processes open the device at the same time. One stops at a signal, like a process that a debugger
 * stops. The other one may be refused, but does not stop, too. Both capture into one file. */
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 10 };

static void stand_still(int signal)
{
    for (;;)
        pause();
}

static void open_and_close(void)
{
    int count;
    struct ibv_device **devices = ibv_get_device_list(&count);
    struct ibv_context *context = devices && count ? ibv_open_device(devices[0]) : NULL;
    if (context)
        ibv_close_device(context);
    _exit(0);
}

static pid_t start(bool stops)
{
    pid_t child = fork();
    if (child)
        return child;
    signal(SIGUSR1, stops ? stand_still : SIG_IGN);
    open_and_close();
    return 0;
}

/* Into an empty file that ends with this process. */
static int capture_to_memory(void)
{
    char path[64];
    int file = memfd_create("capture", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), file);
    setenv("SOFTVERBS_CAPTURE", path, 1);
    return file;
}

static bool run_round(void)
{
    int status;
    pid_t stopped = start(true), other = start(false);
    usleep(1); /* of virtual time: both begin to open it */
    kill(stopped, SIGUSR1);
    waitpid(other, &status, 0);
    kill(stopped, SIGKILL);
    waitpid(stopped, NULL, 0);
    return status == 0;
}

int main(void)
{
    bool good = true;
    signal(SIGUSR1, SIG_IGN); /* until the child has its handler */
    for (int i = 0; i < ROUNDS && good; i++) {
        int file = capture_to_memory();
        good = run_round();
        close(file);
    }
    return !good;
}
