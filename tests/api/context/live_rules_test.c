/* Rules of scripts that are given and taken back (`softverbs inject`) while messages flow. */
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local_end.h"

extern char **environ;

static atomic_bool over;

/* softverbs inject PID RULE, or --clear PID, to its end; what it prints is not TAP. Its exit status. */
static int inject(const char *rule)
{
    char number[16];
    char *add[] = {COMMAND, "inject", number, (char *)rule, NULL},
         *clear[] = {COMMAND, "inject", "--clear", number, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = -1;
    snprintf(number, sizeof number, "%d", (int)getpid());
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    if (!posix_spawn(&child, COMMAND, &actions, NULL, rule ? add : clear, environ))
        waitpid(child, &status, 0);
    posix_spawn_file_actions_destroy(&actions);
    return status;
}

/* How many of them failed. */
static void *come_and_go(void *failed)
{
    static const char *const rules[] = {
        "when packet, every 5: duplicate",        "when packet: delay 10us",
        "when packet, every 7: reorder",          "when packet, opcode \"RC ACK*\", every 3: forge OLD_ACK",
        "when packet: set solicited 1",           "when packet, every 9: hold",
        "when packet: bandwidth 1Gbit",           "when completion, every 4: delay 100us",
        "fault dup=5%,reorder=5%,delay=5us+-5us", "when event: duplicate",
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        *(int *)failed += inject(rules[i]) != 0;
        *(int *)failed += inject(NULL) != 0;
    }
    atomic_store(&over, true);
    return NULL;
}

static void exchange(struct pair *pair)
{
    end_post_receive(&pair->far, end_receive(&pair->far, 1, 0, 64));
    end_post(&pair->near, end_send(&pair->near, &pair->far, IBV_WR_SEND, 2, 0, 64));
    end_expect_sent(&pair->near, 2, IBV_WC_SUCCESS);
    end_expect_received(&pair->far, 1, IBV_WC_SUCCESS, 64);
}

static void rules_come_and_go_while_messages_flow(const void *row)
{
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    wishes.timeout = 18; /* a second: a packet may be held until the next command */
    wishes.retries = 7;
    struct pair pair = pair_open_as(wishes);
    pthread_t other;
    int failed = 0;
    pair_ping(&pair, &pair.near, &pair.far);
    atomic_store(&over, false);
    EXPECT(pthread_create(&other, NULL, come_and_go, &failed), ==, 0);
    while (!atomic_load(&over))
        exchange(&pair);
    EXPECT(pthread_join(other, NULL), ==, 0);
    EXPECT(failed, ==, 0);
    pair_ping(&pair, &pair.near, &pair.far);
}

static void all(void)
{
    CASE(rules_come_and_go_while_messages_flow);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
