/* A program that loads the library by itself, uses a device and unloads the library: its handlers of signals are
 * called, threads end and forks return, as long as the program lives. */
#include <infiniband/verbs.h>

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/group.h"

enum { LEFT_OPEN = 1, ROUNDS = 3, ALL_WELL = 0, NOT_LOADED, NOT_OPENED, NOT_CALLED, NOT_FORKED, MORE_DESCRIPTORS };

typedef struct ibv_device **list_getter(int *);
typedef void list_freer(struct ibv_device **);
typedef struct ibv_context *device_opener(struct ibv_device *);
typedef int device_closer(struct ibv_context *);

static sigjmp_buf back;
static volatile sig_atomic_t called;

static void of_the_program(int number, siginfo_t *info, void *context)
{
    called++;
    siglongjmp(back, 1);
}

static int use(int left)
{
    void *library = dlopen("libibverbs.so.1", RTLD_NOW);
    if (!library)
        return NOT_LOADED;
    struct ibv_device **list = ((list_getter *)dlsym(library, "ibv_get_device_list"))(NULL);
    struct ibv_context *context =
        list && list[0] ? ((device_opener *)dlsym(library, "ibv_open_device"))(list[0]) : NULL;
    if (!context)
        return NOT_OPENED;
    ((list_freer *)dlsym(library, "ibv_free_device_list"))(list);
    if (left != LEFT_OPEN)
        ((device_closer *)dlsym(library, "ibv_close_device"))(context);
    dlclose(library);
    return ALL_WELL;
}

static bool is_called_for(volatile char *fault)
{
    called = 0;
    if (!sigsetjmp(back, 1))
        *fault = 1;
    return called == 1;
}

/* Memory that can't be written, and memory whose file has become too short. */
static bool handlers_are_called(void)
{
    char *protected = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *behind_the_end = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_create("empty", 0), 0);
    return is_called_for(protected) && is_called_for(behind_the_end);
}

static bool a_child_ends(void)
{
    int status = 1;
    pid_t child = fork();
    if (!child)
        _exit(0);
    waitpid(child, &status, 0);
    return !status;
}

static int next_descriptor(void)
{
    int next = dup(0);
    close(next);
    return next;
}

static int load_use_and_unload(int left)
{
    struct sigaction action = {.sa_sigaction = of_the_program, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    int before = next_descriptor();
    for (int round = 0; round < ROUNDS; round++) {
        int result = use(left);
        if (result)
            return result;
    }
    if (left != LEFT_OPEN && next_descriptor() != before)
        return MORE_DESCRIPTORS;
    if (!handlers_are_called())
        return NOT_CALLED;
    return a_child_ends() ? ALL_WELL : NOT_FORKED;
}

/* Runs in a child: cmocka has separate handlers, and a failure may end the process. */
static void in_a_child(int left)
{
    int status = -1;
    pid_t child = fork();
    if (!child)
        _exit(load_use_and_unload(left));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, ALL_WELL << 8);
}

static void handlers_of_the_program_outlive_a_closed_library(void **unused)
{
    in_a_child(0);
}

static void handlers_of_the_program_outlive_a_library_with_an_open_device(void **unused)
{
    in_a_child(LEFT_OPEN);
}

TESTS(handlers_of_the_program_outlive_a_closed_library,
      handlers_of_the_program_outlive_a_library_with_an_open_device)
