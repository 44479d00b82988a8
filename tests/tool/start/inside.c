/* Uses <softverbs.h>, in C and in C++: inside own|none|watch PID|late PID|rules TEXT. Says what came of each call. */
#include <softverbs.h>

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char memory[4096];

static struct ibv_pd *open_domain(void)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
    if (!context)
        exit(2);
    return ibv_alloc_pd(context);
}

static void register_four(struct ibv_pd *domain)
{
    for (int i = 0; i < 4; i++)
        printf("%s ", ibv_reg_mr(domain, memory, sizeof memory, 0) ? "good" : "bad");
    printf("\n");
}

static void own(void)
{
    const char *const event = "ibv_reg_mr, from 2";
    unsigned long long times = 0;
    printf("early %d\n", softverbs_watch(0, event));
    struct ibv_pd *domain = open_domain();
    printf("is here %d\n", softverbs_is_here());
    printf("watch %d\n", softverbs_watch(0, event));
    printf("inject %d\n",
           softverbs_inject(0, "when ibv_reg_mr, nth 3: error ENOMEM\nwhen ibv_reg_mr, nth 4: error EIO", NULL, 0));
    printf("short %d\n", softverbs_wait(0, event, 1, 20));
    register_four(domain);
    printf("wait %d\n", softverbs_wait(0, event, 3, 0));
    int error = softverbs_count(0, event, &times);
    printf("count %d %llu\n", error, times);
    printf("other %d\n", softverbs_count(0, "ibv_reg_mr", &times));
    printf("clear %d\n", softverbs_clear(0));
    printf("gone %d\n", softverbs_count(0, event, &times));
    register_four(domain);
}

static void none(void)
{
    unsigned long long times = 7;
    int count = softverbs_count(0, "work", &times), wait = softverbs_wait(0, "work", 1, 60000);
    printf("%d %d %d %d %d %d %llu\n", softverbs_is_here(), softverbs_inject(0, "nonsense", NULL, 0),
           softverbs_clear(0), softverbs_watch(0, "work"), count, wait, times);
}

static void rules(const char *text)
{
    char why[160] = "-";
    open_domain();
    int error = softverbs_inject(0, text, why, sizeof why);
    printf("%d %s\n", error, why);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    long pid = argc > 2 ? atol(argv[2]) : 0;
    if (!strcmp(argv[1], "own"))
        own();
    else if (!strcmp(argv[1], "none"))
        none();
    else if (!strcmp(argv[1], "rules"))
        rules(argv[2]);
    else {
        printf("watch %d\n", softverbs_watch(pid, "work, nth 2"));
        printf("wait %d\n", softverbs_wait(pid, "work, nth 2", 1, strcmp(argv[1], "late") ? 60000 : 60));
    }
    return 0;
}
