/* Attaching to librdmacm beside threads that load libraries. The library taken for librdmacm here is lazy.c, which is
 * bound lazily, as rdma-core's own build does it; the distribution's is not. */
#include <infiniband/verbs.h>

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "base/testing/patience.h"

enum { SECONDS_MOST = 30, RUNS = 25, CALLS = 3000, FORKS = 25 };

__attribute__((visibility("default"))) extern atomic_bool constructing; /* of constructor.c */
atomic_bool constructing;
static atomic_bool stop, loading;

typedef bool question(const char *name);

static void *load(const char *name)
{
    void *library = dlopen(name, RTLD_LAZY);
    if (!library)
        _exit(100);
    return library;
}

static bool ask(void *library, const char *name, const char *argument)
{
    question *asked = (question *)dlsym(library, name);
    return asked && asked(argument);
}

static void *load_and_unload(void *name)
{
    while (!atomic_load(&stop)) {
        dlclose(load(name));
        atomic_store(&loading, true);
    }
    return NULL;
}

static void *load_once(void *name)
{
    return load(name);
}

static void list_devices(void)
{
    ibv_free_device_list(ibv_get_device_list(NULL));
}

static pthread_t start(void *(*work)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, argument))
        _exit(101);
    return thread;
}

/* The process's first call, when another thread is within dlopen. */
static int call_beside_a_loader(void)
{
    void *library = load(LAZY);
    pthread_t thread = start(load_and_unload, LAST);
    PATIENTLY_WHILE (!atomic_load(&loading))
        ;
    list_devices();
    bool opens = ask(library, "lazy_opens_a_device", "/dev/infiniband/rdma_cm");
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    return opens ? 0 : 1;
}

/* The constructor's thread is in dlopen, and this one in its first call, and neither must wait for the other. */
static int call_beside_a_constructor(void)
{
    load(LAZY);
    pthread_t thread = start(load_once, CONSTRUCTOR);
    PATIENTLY_WHILE (!atomic_load(&constructing))
        ;
    list_devices();
    pthread_join(thread, NULL);
    return 0;
}

/* Some calls find the library as it is mapped, and not yet relocated. */
static int call_while_it_is_loaded(void)
{
    pthread_t thread = start(load_and_unload, OTHER);
    for (int i = 0; i < CALLS; i++)
        list_devices();
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    void *library = load(LAZY);
    list_devices();
    return ask(library, "lazy_opens_a_device", "/dev/infiniband/rdma_cm") ? 0 : 1;
}

static void *open_and_close(void *library)
{
    while (!atomic_load(&stop))
        ask(library, "lazy_opens_a_device", "/dev/infiniband/rdma_cm");
    return NULL;
}

/* Children of a process whose threads make and close event channels, make one, too. */
static int fork_beside_channels(void)
{
    void *library = load(LAZY);
    list_devices();
    pthread_t threads[] = {start(open_and_close, library), start(open_and_close, library)};
    for (int i = 0, status = -1; i < FORKS; i++) {
        pid_t child = fork();
        if (!child) {
            alarm((unsigned)patience(SECONDS_MOST));
            _exit(ask(library, "lazy_opens_a_device", "/dev/infiniband/rdma_cm") ? 0 : 1);
        }
        if (waitpid(child, &status, 0) != child || status)
            return status ? WTERMSIG(status) + 1 : 1;
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static int call_what_is_not_for_the_device(void)
{
    char name[] = "/tmp/softverbs-attach.XXXXXX";
    void *library = load(LAZY);
    int fd = mkstemp(name);
    list_devices();
    bool written = ask(library, "lazy_writes_a_file", name);
    close(fd);
    unlink(name);
    return written ? 0 : 1;
}

/* Runs in new child processes, in which nothing was attached to before. SIGALRM ends a child that hangs. */
static void in_children(int runs, int (*work)(void))
{
    for (int i = 0; i < runs; i++) {
        int status = -1;
        pid_t child = fork();
        if (!child) {
            alarm((unsigned)patience(SECONDS_MOST));
            _exit(work());
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

static void a_first_call_beside_a_dlopen_returns(void **unused)
{
    in_children(RUNS, call_beside_a_loader);
}

static void a_first_call_beside_a_constructor_that_makes_one_returns(void **unused)
{
    in_children(1, call_beside_a_constructor);
}

static void calls_while_the_library_comes_and_goes_return(void **unused)
{
    in_children(2, call_while_it_is_loaded);
}

static void children_of_a_fork_beside_event_channels_make_one(void **unused)
{
    in_children(1, fork_beside_channels);
}

static void what_is_not_for_the_device_goes_where_it_went(void **unused)
{
    in_children(1, call_what_is_not_for_the_device);
}

TESTS(a_first_call_beside_a_dlopen_returns,
      a_first_call_beside_a_constructor_that_makes_one_returns,
      calls_while_the_library_comes_and_goes_return,
      children_of_a_fork_beside_event_channels_make_one,
      what_is_not_for_the_device_goes_where_it_went)
