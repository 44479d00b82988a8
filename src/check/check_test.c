/* The checker beside threads: each on separate objects, and several on one queue pair. The test has all of the library
 * inside; nothing may be found, and under ThreadSanitizer nothing may race. */
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "check/check.h"
#include "check/rule.h"
#include "loopback.h"

enum { THREADS = 3, LIVES = 5, WRITES = 200 };

static char report[] = "/tmp/softverbs-check-XXXXXX";

static size_t report_length(void)
{
    int file = open(report, O_RDONLY | O_CLOEXEC);
    off_t length = lseek(file, 0, SEEK_END);
    close(file);
    return (size_t)length;
}

static int write_once(struct loopback *loopback, unsigned from, unsigned flags)
{
    struct ibv_sge sge = loopback_piece(loopback, from, 8);
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = flags};
    wr.wr.rdma.remote_addr = (uintptr_t)loopback->memory + LOOPBACK_MEMORY / 2;
    wr.wr.rdma.rkey = loopback->mr->rkey;
    return ibv_post_send(loopback->qp[0], &wr, &bad);
}

static void *live(void *unused)
{
    for (int life = 0; life < LIVES; life++) {
        struct loopback loopback;
        loopback_open(&loopback, &(struct loopback_options){0});
        for (int write = 0; write < WRITES; write++) {
            loopback.memory[0]++;
            MUST(!write_once(&loopback, 0, IBV_SEND_SIGNALED));
            loopback_poll(&loopback, 1);
        }
        loopback_close(&loopback);
    }
    return NULL;
}

static void threads_live_beside_each_other(void **state)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        MUST(!pthread_create(&threads[i], NULL, live, NULL));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(report_length(), 0);
}

/* Each writes from separate bytes, which it changes when the completion of its signalled work was polled. */
struct poster {
    struct loopback *loopback;
    unsigned from;
    atomic_uint *posted;
};

static void *post_on(void *argument)
{
    struct poster *poster = argument;
    for (int write = 0; write < WRITES;) {
        unsigned flags = write % 4 == 3 ? IBV_SEND_SIGNALED : 0;
        if (write_once(poster->loopback, poster->from, flags)) {
            sched_yield(); /* the queue is full until the other thread polls */
            continue;
        }
        write++;
        if (flags)
            atomic_fetch_add(poster->posted, 1);
    }
    return NULL;
}

static void threads_post_on_one_queue_pair(void **state)
{
    struct loopback loopback;
    struct poster posters[THREADS];
    pthread_t threads[THREADS];
    atomic_uint posted = 0;
    loopback_open(&loopback, &(struct loopback_options){0});
    for (unsigned i = 0; i < THREADS; i++) {
        posters[i] = (struct poster){&loopback, 64 * i, &posted};
        MUST(!pthread_create(&threads[i], NULL, post_on, &posters[i]));
    }
    loopback_poll(&loopback, THREADS * WRITES / 4);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    loopback_close(&loopback);
    assert_int_equal(atomic_load(&posted), THREADS * WRITES / 4);
    assert_int_equal(report_length(), 0);
}

static void a_list_chooses_rules_and_levels(void **state)
{
    struct rule_choice choice;
    char why[256];
    assert_true(rule_choose("error,-cq-overrun,cq-overrun", &choice, why, sizeof why));
    assert_true(choice.rules[RULE_SEND_BUFFER_CHANGED]);
    assert_false(choice.rules[RULE_CQ_OVERRUN]); /* a rule is left out at any place of the list */
    assert_false(choice.rules[RULE_TIMEOUT_ZERO]);
    assert_true(rule_choose("fatal,full,fill", &choice, why, sizeof why));
    assert_true(choice.fatal && choice.full && choice.fill && choice.rules[RULE_CQ_OVERRUN]);
    assert_false(choice.rules[RULE_TIMEOUT_ZERO]);
    assert_true(rule_choose("notes", &choice, why, sizeof why));
    assert_true(choice.rules[RULE_TIMEOUT_ZERO] && choice.rules[RULE_SEND_BUFFER_CHANGED]);
    assert_true(rule_choose("timeout-zero", &choice, why, sizeof why));
    assert_true(choice.rules[RULE_TIMEOUT_ZERO] && !choice.rules[RULE_SEND_BUFFER_CHANGED]);
    assert_false(rule_choose("adapter,cq-overrunn", &choice, why, sizeof why));
    assert_non_null(strstr(why, "\"cq-overrunn\" is neither a rule"));
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    return remove(path);
}

int main(void)
{
    char directory[] = "/dev/shm/softverbs-check-XXXXXX";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_chooses_rules_and_levels),
        cmocka_unit_test(threads_live_beside_each_other),
        cmocka_unit_test(threads_post_on_one_queue_pair),
    };
    MUST(mkdtemp(directory));
    close(mkstemp(report));
    setenv("SOFTVERBS_DIR", directory, 1);
    setenv("SOFTVERBS_CHECK", "notes", 1);
    setenv("SOFTVERBS_CHECK_REPORT", report, 1);
    check_begin();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(report);
    nftw(directory, remove_one, 4, FTW_DEPTH | FTW_PHYS);
    return failed;
}
