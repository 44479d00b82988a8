/* In a libibverbs that is otherwise ours: a layer that notes all calls, for programs that know nothing of it.
 * $SOFTVERBS_TEST_LAYER says when it is around: `always`, or `midst`, from the program's third ibv_modify_qp, which
 * takes its queue pair to RTS, until there are MIDST notes. The notes go to $SOFTVERBS_TEST_NOTES.PID. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/testing/notes.h"

enum { MIDST = 1000, TO_RTS = 3, NAP = 50 /* us */ };

static int count_modify(struct ibv_qp *, struct ibv_qp_attr *, int mask);

static atomic_uint modified;
static struct calls_layer waiting = {.name = "waiting", .place = 1, .calls = {.ibv_modify_qp = count_modify}};

static int count_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int error = calls_get(&waiting.below, ibv_modify_qp)(qp, attr, mask);
    atomic_fetch_add(&modified, 1);
    return error;
}

static void *join_and_leave(void *unused)
{
    while (atomic_load(&modified) < TO_RTS)
        usleep(NAP);
    calls_put_around(&notes_high);
    calls_take_off(&waiting);
    while (notes_count() < MIDST)
        usleep(NAP);
    calls_take_off(&notes_high);
    return NULL;
}

static bool wants(const char *when)
{
    const char *wanted = getenv("SOFTVERBS_TEST_LAYER");
    return wanted && !strcmp(wanted, when);
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    if (wants("always"))
        calls_put_around(&notes_high);
    if (!wants("midst"))
        return;
    calls_put_around(&waiting);
    if (pthread_create(&thread, NULL, join_and_leave, NULL))
        abort();
    pthread_detach(thread);
}

__attribute__((destructor)) static void end(void)
{
    char path[4096];
    const char *prefix = getenv("SOFTVERBS_TEST_NOTES");
    if (!prefix)
        return;
    snprintf(path, sizeof path, "%s.%d", prefix, (int)getpid());
    if (!notes_write(path))
        fprintf(stderr, "%s can't be written, or notes were lost\n", path);
}
