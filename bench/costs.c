/* The cost of many objects: queue pairs, processes of the host, hosts, memory regions, tags. One process, the hub, has
 * COUNT objects of a kind; the other ends are processes that it forks. Usage: costs AXIS COUNT [asleep], with an axis
 * of the table below or tags: the peer of queue pairs and regions polls, or sleeps. Or costs limit regions | qps |
 * processes, which makes them until that is refused. Each line of the output is a measurement: a name, then a number.
 * See costs.py. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "endpoint.h"
#include "measure.h"
#include "room.h"

enum { BURSTS = 20, BURST = 50, EMPTY_POLLS = 64, KEYS = 256, BYTES = 8, SENDS = 4, LIMIT = 300, SILENCE = 100000 /* us */ };

/* The axis that has the count; the others are 1. */
static const struct axis {
    const char *name;
    bool peers, qps, regions;
    bool hosts; /* each process is in a separate network namespace: h0, h1, ... */
} axes[] = {
    {"qps", .qps = true},
    {"regions", .regions = true},
    {"processes", .peers = true},
    {"hosts", .peers = true, .hosts = true},
};

/* The memory that the processes share. */
struct peer {
    union ibv_gid gid;
    pid_t pid;
    uint64_t memory;
    uint32_t keys[KEYS]; /* of regions evenly among all that it has */
    double one_more;     /* the time to register a region and deregister it, with all others there */
    long added;          /* KiB that the regions took */
};

struct meeting {
    pthread_barrier_t barrier;
    const struct axis *axis;
    unsigned peers, qps, regions;
    bool asleep; /* the peers wait so, as many can't have a processor each */
    union ibv_gid hub;
    uint32_t *numbers[2]; /* of queue pairs, [of the hub or of the peers][peer * qps + i] */
    struct peer *peer;
};

/* A process of the measurement, the hub or a peer. */
struct member {
    struct meeting *meeting;
    struct endpoint endpoint;
    struct ibv_qp **qp;
    unsigned first, count; /* our queue pairs in `numbers` */
    char memory[64];
    struct ibv_mr *mr;
};

/* --- what is measured */

static double now_us(void)
{
    return measure_seconds() * 1e6;
}

struct member;

/* The least of the medians of some bursts: what else the machine does only adds. In microseconds. */
static double measure(struct member *member, double (*run)(struct member *))
{
    double times[BURST], least = 0;
    for (int burst = 0; burst < BURSTS; burst++) {
        for (int i = 0; i < BURST; i++)
            times[i] = run(member);
        double middle = measure_median(times, BURST);
        least = burst && least < middle ? least : middle;
        usleep(1000);
    }
    return least;
}

/* The first line of a file of /proc/self that begins with the word and has a number. */
static long number_in(const char *path, const char *word)
{
    char line[512];
    long number = -1;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, word, strlen(word)) && sscanf(line + strlen(word), "%ld", &number) == 1)
            break;
    if (file)
        fclose(file);
    return number;
}

/* KiB that are resident for this process, each page shared with others counted in part. */
static long resident(void)
{
    return number_in("/proc/self/smaps_rollup", "Pss:");
}

/* The resident memory of the hub and all of its peers, in KiB. */
static long resident_together(const struct meeting *meeting)
{
    long kib = resident();
    for (unsigned i = 0; i < meeting->peers; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/smaps_rollup", meeting->peer[i].pid);
        kib += number_in(path, "Pss:");
    }
    return kib;
}

static unsigned descriptors(void)
{
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (directory && readdir(directory))
        count++;
    closedir(directory);
    return count - 3; /* ".", ".." and its own */
}

static unsigned mappings(void)
{
    unsigned count = 0;
    FILE *file = fopen("/proc/self/maps", "re");
    for (int c; file && (c = fgetc(file)) != EOF;)
        count += c == '\n';
    fclose(file);
    return count;
}

static void print_memory(long kib, long together)
{
    printf("memory %ld\ntogether %ld\ndescriptors %u\nmappings %u\nshared %ld\n", kib, together, descriptors(),
           mappings(), number_in("/proc/self/smaps_rollup", "Pss_Shmem:"));
}

static unsigned any(unsigned below)
{
    static uint32_t state = 12345;
    state = state * 1664525 + 1013904223;
    return (unsigned)((uint64_t)state * below >> 32);
}

/* --- queue pairs */

static void post_receive(struct ibv_qp *qp, unsigned number)
{
    struct ibv_recv_wr wr = {.wr_id = number}, *bad;
    errno = ibv_post_recv(qp, &wr, &bad);
    if (errno)
        die("a receive is refused");
}

static void post_send(struct ibv_qp *qp)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    errno = ibv_post_send(qp, &wr, &bad);
    if (errno)
        die("a send is refused");
}

static void create_qps(struct member *member, uint32_t *numbers)
{
    for (unsigned i = 0; i < member->count; i++) {
        member->qp[i] = endpoint_create_qp(&member->endpoint, IBV_QPT_RC, SENDS, 1);
        numbers[member->first + i] = member->qp[i]->qp_num;
    }
}

static void connect_qps(struct member *member, bool is_hub)
{
    struct meeting *meeting = member->meeting;
    for (unsigned i = 0; i < member->count; i++) {
        struct address peer = {.qp_num = meeting->numbers[is_hub][member->first + i]};
        peer.gid = is_hub ? meeting->peer[i / meeting->qps].gid : meeting->hub;
        endpoint_connect(member->qp[i], &peer, 18);
        post_receive(member->qp[i], i);
    }
}

/* Polls until there is a completion; a bad one ends the program. */
static struct ibv_wc next_completion(struct endpoint *endpoint)
{
    struct ibv_wc wc;
    int found;
    while (!(found = ibv_poll_cq(endpoint->cq, 1, &wc)))
        ;
    if (found < 0 || wc.status)
        die("a completion says: %s", ibv_wc_status_str(found < 0 ? IBV_WC_GENERAL_ERR : wc.status));
    return wc;
}

/* A message and the peer's answer. */
static double round_trip(struct member *hub, unsigned number)
{
    double start = now_us();
    post_send(hub->qp[number]);
    for (int i = 0; i < 2; i++)
        if (next_completion(&hub->endpoint).opcode == IBV_WC_RECV)
            post_receive(hub->qp[number], number);
    return now_us() - start;
}

static double any_round_trip(struct member *hub)
{
    return round_trip(hub, any(hub->count));
}

static double read_once(struct member *hub)
{
    double start = now_us();
    unsigned number = any(hub->count);
    const struct peer *peer = &hub->meeting->peer[number / hub->meeting->qps];
    struct ibv_sge sge = {(uintptr_t)hub->memory, BYTES, hub->mr->lkey};
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1};
    struct ibv_send_wr *bad;
    wr.wr.rdma.remote_addr = peer->memory;
    wr.wr.rdma.rkey = peer->keys[any(KEYS)];
    errno = ibv_post_send(hub->qp[number], &wr, &bad);
    if (errno)
        die("a READ is refused");
    next_completion(&hub->endpoint);
    return now_us() - start;
}

static double first_round_trips(struct member *hub)
{
    unsigned peers = hub->meeting->peers;
    double *times = calloc(peers, sizeof *times), middle = 0;
    for (unsigned i = 0; times && i < peers; i++)
        times[i] = round_trip(hub, i * hub->meeting->qps);
    if (times)
        middle = measure_median(times, peers);
    free(times);
    return middle;
}

static double empty_poll(struct member *hub)
{
    struct ibv_wc wc;
    double start = now_us();
    for (int i = 0; i < EMPTY_POLLS; i++)
        if (ibv_poll_cq(hub->endpoint.cq, 1, &wc))
            die("an empty queue has a completion");
    return (now_us() - start) / EMPTY_POLLS;
}

/* Polls until peers that say nothing count as silent. */
static double silent_poll(struct member *hub)
{
    for (double start = now_us(); now_us() - start < SILENCE;)
        empty_poll(hub);
    return measure(hub, empty_poll);
}

/* The time of one queue pair more, from its creation to RTS, and of its end. */
static double one_more_qp(struct member *hub)
{
    double start = now_us();
    struct ibv_qp *qp = endpoint_create_qp(&hub->endpoint, IBV_QPT_RC, SENDS, 1);
    struct address self = endpoint_address(&hub->endpoint, qp, NULL);
    endpoint_connect(qp, &self, 18);
    errno = ibv_destroy_qp(qp);
    if (errno)
        die("a queue pair does not end");
    return now_us() - start;
}

/* --- memory regions */

static double one_more_region(struct member *member)
{
    double start = now_us();
    errno = ibv_dereg_mr(endpoint_register(&member->endpoint, member->memory, sizeof member->memory));
    if (errno)
        die("a region does not end");
    return now_us() - start;
}

static void register_regions(struct member *member, struct peer *peer)
{
    unsigned count = member->meeting->regions;
    uint32_t *keys = malloc(count * sizeof *keys);
    memset(keys, 1, count * sizeof *keys); /* resident before the measurement */
    long before = resident();
    for (unsigned i = 0; i < count; i++)
        keys[i] = endpoint_register(&member->endpoint, member->memory, sizeof member->memory)->rkey;
    peer->added = resident() - before;
    for (unsigned i = 0; i < KEYS; i++)
        peer->keys[i] = keys[(uint64_t)i * count / KEYS];
    peer->memory = (uintptr_t)member->memory;
    free(keys);
}

/* --- the processes */

static void meet(struct member *member)
{
    pthread_barrier_wait(&member->meeting->barrier);
}

static void *shared(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        die("no shared memory");
    return memory;
}

static void open_member(struct member *member, unsigned host)
{
    char name[16];
    snprintf(name, sizeof name, "h%u", host);
    if (member->meeting->axis->hosts)
        endpoint_go_to(name);
    endpoint_open(&member->endpoint, 64);
    member->qp = calloc(member->count, sizeof *member->qp);
    memset(member->qp, 1, member->count * sizeof *member->qp);
}

static void answer(struct member *member)
{
    struct ibv_wc wc;
    for (;;) {
        int found = member->meeting->asleep ? endpoint_wait(&member->endpoint, &wc, 1, LIMIT)
                                            : ibv_poll_cq(member->endpoint.cq, 1, &wc);
        if (found < 0 || (found && wc.status))
            die("a peer's completion says: %s", ibv_wc_status_str(wc.status));
        if (!found || wc.opcode != IBV_WC_RECV)
            continue;
        post_receive(member->qp[wc.wr_id], (unsigned)wc.wr_id);
        post_send(member->qp[wc.wr_id]);
    }
}

/* The hub has the first half of our processors, and the peers have the second. */
static void use_half(int half)
{
    cpu_set_t all, mine;
    CPU_ZERO(&mine);
    if (sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < 2)
        return;
    for (int i = 0, seen = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all) && (seen++ >= CPU_COUNT(&all) / 2) == half)
            CPU_SET(i, &mine);
    sched_setaffinity(0, sizeof mine, &mine);
}

static void run_peer(struct meeting *meeting, unsigned number)
{
    struct member member = {.meeting = meeting, .first = number * meeting->qps, .count = meeting->qps};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    use_half(1);
    open_member(&member, number + 1);
    struct peer *peer = &meeting->peer[number];
    peer->pid = getpid();
    peer->gid = member.endpoint.gid;
    register_regions(&member, peer);
    create_qps(&member, meeting->numbers[1]);
    meet(&member);
    meet(&member);
    connect_qps(&member, false);
    if (meeting->axis->regions)
        peer->one_more = measure(&member, one_more_region);
    meet(&member);
    answer(&member);
}

static long make_hub(struct member *hub, double *open)
{
    meet(hub); /* the others are there */
    double start = now_us();
    open_member(hub, 0);
    *open = now_us() - start;
    long before = resident();
    hub->meeting->hub = hub->endpoint.gid;
    hub->mr = endpoint_register(&hub->endpoint, hub->memory, sizeof hub->memory);
    create_qps(hub, hub->meeting->numbers[0]);
    meet(hub);
    connect_qps(hub, true);
    meet(hub);
    return before;
}

static void run_hub(struct meeting *meeting)
{
    struct member hub = {.meeting = meeting, .count = meeting->peers * meeting->qps};
    double open;
    long before = make_hub(&hub, &open), base = before - (long)(hub.count * sizeof *hub.qp / 1024);
    printf("open %.2f\nfirst %.2f\n", open, first_round_trips(&hub));
    printf("round_trip %.3f\n", measure(&hub, any_round_trip));
    printf("read %.3f\n", measure(&hub, read_once));
    printf("empty_poll %.5f\n", silent_poll(&hub));
    print_memory(base + resident() - before + (meeting->axis->regions ? meeting->peer->added : 0),
                 resident_together(meeting));
    printf("one_more %.3f\n", meeting->axis->regions ? meeting->peer->one_more : measure(&hub, one_more_qp));
}

static void child_ended(int signal)
{
    static const char message[] = "costs: a peer has ended\n";
    ssize_t written = write(2, message, sizeof message - 1);
    _exit(written < 0 ? 2 : 1);
}

static void run_axis(const struct axis *axis, unsigned count, bool asleep)
{
    struct meeting *meeting = shared(sizeof *meeting);
    *meeting = (struct meeting){.axis = axis, .peers = axis->peers ? count : 1, .asleep = axis->peers || asleep};
    meeting->qps = axis->qps ? count : 1;
    meeting->regions = axis->regions ? count : 1;
    for (int side = 0; side < 2; side++)
        meeting->numbers[side] = shared((size_t)meeting->peers * meeting->qps * sizeof(uint32_t));
    meeting->peer = shared(meeting->peers * sizeof *meeting->peer);
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&meeting->barrier, &attributes, meeting->peers + 1);
    signal(SIGCHLD, child_ended);
    for (unsigned i = 0; i < meeting->peers; i++)
        if (!fork())
            run_peer(meeting, i);
    use_half(0);
    run_hub(meeting);
    fflush(stdout);
    signal(SIGCHLD, SIG_IGN);
    exit(0); /* the peers end with us */
}

/* --- tags */

struct list {
    struct room room;
    uint64_t oldest, next;
};
static struct list list;

static void add_tag(void)
{
    if (room_add(&list.room, list.next, UINT64_MAX, list.next, 0, BYTES, 0, 0, NULL))
        die("a tag is refused");
    list.next++;
}

/* The time of a message that matches the oldest tag, which is then posted again after all others. */
static double tag_round_trip(struct member *none)
{
    struct room_event event;
    struct ibv_wc wc;
    double start = now_us();
    room_head(room_upper(&list.room, 0), IBV_TMH_EAGER, 0, list.oldest++);
    if (room_send(&list.room, 0, 0, 0, TMH + BYTES) || !room_wait(&list.room, &event) || event.status ||
        !room_sender_wait(&list.room, &wc))
        die("a message has not matched");
    double spent = now_us() - start;
    add_tag();
    return spent;
}

static double tag_post(struct member *none)
{
    double start = now_us();
    add_tag();
    return now_us() - start;
}

static void run_tags(unsigned count)
{
    if (!room_open(&list.room, count + BURSTS * BURST, 16) || !room_connect(&list.room, 0))
        die("no list of %u tags", count);
    while (list.next < count)
        add_tag();
    printf("round_trip %.3f\n", measure(NULL, tag_round_trip));
    print_memory(resident(), resident());
    printf("one_more %.3f\n", measure(NULL, tag_post));
}

/* --- limits: how many there were, and the errno of the one more */

static int refusal; /* errno of what was refused */

static unsigned limit_of_regions(struct endpoint *endpoint)
{
    static char memory[64];
    unsigned count = 0;
    while (ibv_reg_mr(endpoint->pd, memory, sizeof memory, ENDPOINT_ACCESS))
        count++;
    refusal = errno;
    return count;
}

static unsigned limit_of_qps(struct endpoint *endpoint)
{
    struct ibv_qp_init_attr attr = {.send_cq = endpoint->cq, .recv_cq = endpoint->cq, .qp_type = IBV_QPT_RC};
    attr.cap = (struct ibv_qp_cap){.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    unsigned count = 0;
    while (ibv_create_qp(endpoint->pd, &attr))
        count++;
    refusal = errno;
    return count;
}

/* Each of them opens the device, reports the result by the pipe, and stays. */
static void stay(int to)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct ibv_device **devices = ibv_get_device_list(NULL);
    errno = 0;
    int error = devices && ibv_open_device(*devices) ? 0 : errno;
    if (write(to, &error, sizeof error) == sizeof error)
        pause();
    _exit(1);
}

static unsigned limit_of_processes(void)
{
    int pipes[2];
    unsigned count = 0;
    for (bool fine = !pipe(pipes); fine; count += !refusal) {
        if (!fork())
            stay(pipes[1]);
        fine = read(pipes[0], &refusal, sizeof refusal) == sizeof refusal && !refusal;
    }
    return count;
}

static void find_limit(const char *of)
{
    struct endpoint endpoint;
    unsigned count;
    if (!strcmp(of, "processes"))
        count = limit_of_processes();
    else {
        endpoint_open(&endpoint, 64);
        count = !strcmp(of, "regions") ? limit_of_regions(&endpoint) : limit_of_qps(&endpoint);
    }
    printf("limit %u\nerrno %d\n%s\n", count, refusal, strerror(refusal));
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv)
{
    unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    alarm(LIMIT);
    if (argc > 2 && !strcmp(argv[1], "limit"))
        find_limit(argv[2]);
    for (size_t i = 0; count && i < sizeof axes / sizeof *axes; i++)
        if (!strcmp(argv[1], axes[i].name))
            run_axis(&axes[i], count, argc > 3);
    if (!count || strcmp(argv[1], "tags"))
        return 2;
    run_tags(count);
    return 0;
}
