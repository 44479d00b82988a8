/* Programs for softverbs sim that have nothing to do with RDMA: `threads WORD ...` does one of them, and says on
 * standard output how it went. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 3, FULL = 1 << 16 };

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

static void rest(unsigned milliseconds)
{
    struct timespec span = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&span, NULL);
}

/* --- race: reads a counter and writes it, each under its lock, but not both under one */

static int counter;

static void *count(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&first);
        int seen = counter;
        pthread_mutex_unlock(&first);
        pthread_mutex_lock(&first);
        counter = seen + 1;
        pthread_mutex_unlock(&first);
    }
    return NULL;
}

static int race(char **words)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d\n", counter);
    return counter != THREADS * ROUNDS;
}

/* --- deadlock: two locks in two orders */

static void *take_backwards(void *argument)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&second);
        pthread_mutex_lock(&first);
        pthread_mutex_unlock(&first);
        pthread_mutex_unlock(&second);
    }
    return NULL;
}

static int deadlock(char **words)
{
    pthread_t other;
    pthread_create(&other, NULL, take_backwards, NULL);
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&first);
        pthread_mutex_lock(&second);
        pthread_mutex_unlock(&second);
        pthread_mutex_unlock(&first);
    }
    pthread_join(other, NULL);
    return 0;
}

static volatile bool flag;

/* --- yields for ever */

static int livelock(char **words)
{
    while (!flag)
        sched_yield();
    return 0;
}

/* --- memory: a loop that makes no call, until another thread has slept */

static void *set_flag(void *argument)
{
    rest(2000);
    flag = true;
    return NULL;
}

static int memory(char **words)
{
    pthread_t other;
    pthread_create(&other, NULL, set_flag, NULL);
    while (!flag) {
    }
    pthread_join(other, NULL);
    puts("seen");
    return 0;
}

/* --- looks again and again for what another thread sends later, by calls that do not wait */

static void *send_later(void *argument)
{
    rest(50);
    return (void *)(intptr_t)write(*(int *)argument, "x", 1);
}

static int look_again(char **words)
{
    int ends[2];
    char byte;
    pthread_t other;
    if (pipe2(ends, O_NONBLOCK))
        return 1;
    pthread_create(&other, NULL, send_later, &ends[1]);
    while (read(ends[0], &byte, 1) < 0 && errno == EAGAIN) {
    }
    struct pollfd file = {ends[0], POLLIN, 0};
    pthread_join(other, NULL);
    pthread_create(&other, NULL, send_later, &ends[1]);
    while (!poll(&file, 1, 0)) {
    }
    pthread_join(other, NULL);
    puts("came");
    return 0;
}

/* --- computes for longer than a loop over memory may run, alone */

static int compute(char **words)
{
    volatile uint64_t sum = 0;
    for (uint64_t i = 0; i < 100000000; i++)
        sum += i;
    puts("done");
    return 0;
}

/* --- waits CALL DEED: a thread waits in a call while another closes its descriptor, or gives its number to another
 * file */

static struct {
    int near, far; /* the ends of a pipe or of two sockets */
    ssize_t result;
    int error;
} wait_of;

static char bytes[FULL];

static ssize_t wait_reading(void)
{
    return read(wait_of.near, bytes, 1);
}

static ssize_t wait_receiving(void)
{
    return recv(wait_of.near, bytes, 1, 0);
}

static ssize_t wait_polling(void)
{
    struct pollfd file = {wait_of.near, POLLIN, 0};
    ssize_t ready = poll(&file, 1, 3000);
    return ready * 1000 + file.revents;
}

static ssize_t wait_selecting(void)
{
    fd_set set;
    struct timeval span = {3, 0};
    FD_ZERO(&set);
    FD_SET(wait_of.near, &set);
    ssize_t ready = select(wait_of.near + 1, &set, NULL, NULL, &span);
    return ready * 1000 + !!FD_ISSET(wait_of.near, &set);
}

static ssize_t wait_sending(void)
{
    return send(wait_of.near, bytes, 1, 0);
}

static ssize_t wait_writing(void)
{
    return write(wait_of.near, bytes, 1);
}

static ssize_t wait_epolling(void)
{
    struct epoll_event event;
    return epoll_wait(wait_of.near, &event, 1, 3000);
}

static int watched[2]; /* of the set of epoll */

static void make_pipe(void)
{
    int ends[2];
    if (!pipe(ends))
        wait_of.near = ends[0], wait_of.far = ends[1];
}

static void make_full_pipe(void)
{
    int ends[2];
    if (pipe(ends))
        return;
    wait_of.near = ends[1], wait_of.far = ends[0];
    fcntl(wait_of.near, F_SETFL, O_NONBLOCK);
    while (write(wait_of.near, bytes, sizeof bytes) > 0) {
    }
    fcntl(wait_of.near, F_SETFL, 0);
}

static void make_sockets(void)
{
    int ends[2];
    if (!socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        wait_of.near = ends[0], wait_of.far = ends[1];
}

static void make_full_sockets(void)
{
    make_sockets();
    while (send(wait_of.near, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
}

static void make_set(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    if (pipe(watched))
        return;
    wait_of.near = epoll_create1(0);
    wait_of.far = watched[1];
    epoll_ctl(wait_of.near, EPOLL_CTL_ADD, watched[0], &event);
}

static void put_byte(void)
{
    (void)!write(wait_of.far, bytes, 1);
}

static void take_bytes(void)
{
    while (read(wait_of.far, bytes, sizeof bytes) == sizeof bytes) {
    }
}

static const struct {
    const char *word;
    void (*make)(void);
    ssize_t (*wait)(void);
    void (*act)(void);
} waits[] = {{"read", make_pipe, wait_reading, put_byte},          {"recv", make_sockets, wait_receiving, put_byte},
             {"poll", make_pipe, wait_polling, put_byte},          {"select", make_pipe, wait_selecting, put_byte},
             {"epoll", make_set, wait_epolling, put_byte},         {"write", make_full_pipe, wait_writing, take_bytes},
             {"send", make_full_sockets, wait_sending, take_bytes}};

static void *wait_in_thread(void *argument)
{
    errno = 0;
    wait_of.result = waits[*(unsigned *)argument].wait();
    wait_of.error = wait_of.result < 0 ? errno : 0;
    return NULL;
}

static void do_deed(const char *deed)
{
    int other[2];
    if (!strcmp(deed, "close"))
        close(wait_of.near);
    if (!strcmp(deed, "dup2") && !pipe(other) && write(other[1], "12", 2) == 2)
        dup2(other[0], wait_of.near);
}

static int await_deed(char **words)
{
    pthread_t other;
    unsigned which = 0;
    while (strcmp(waits[which].word, words[0]) != 0)
        which++;
    waits[which].make();
    pthread_create(&other, NULL, wait_in_thread, &which);
    rest(100);
    do_deed(words[1]);
    rest(100);
    waits[which].act();
    pthread_join(other, NULL);
    printf("%zd %d\n", wait_of.result, wait_of.error);
    return 0;
}

/* --- signals: how a read ends that an alarm interrupts */

static void ignore(int signal)
{
}

/* The alarm comes again, so that a read that begins anew ends, too, when its byte comes. */
static int interrupted(char **words)
{
    int ends[2];
    char byte;
    struct sigaction action = {.sa_handler = ignore, .sa_flags = strcmp(words[0], "restart") ? 0 : SA_RESTART};
    struct itimerval once = {{0, 0}, {0, 100000}};
    sigaction(SIGALRM, &action, NULL);
    if (pipe(ends))
        return 1;
    pid_t child = fork();
    if (!child) {
        rest(300);
        _exit(write(ends[1], "x", 1) != 1);
    }
    setitimer(ITIMER_REAL, &once, NULL);
    ssize_t got = read(ends[0], &byte, 1);
    printf("%zd %d\n", got, got < 0 ? errno : 0);
    waitpid(child, NULL, 0);
    return 0;
}

/* A child's end, whose signal is ignored, interrupts nothing. */
static int child_ends(char **words)
{
    pid_t child = fork();
    if (!child) {
        rest(100);
        _exit(7);
    }
    int ready = poll(NULL, 0, 500), how;
    int error = ready < 0 ? errno : 0;
    waitpid(child, &how, 0);
    printf("%d %d %d\n", ready, error, WEXITSTATUS(how));
    return 0;
}

/* --- masked CALL: a signal that is blocked but for the time of the wait */

static volatile int handled;

static void count_signal(int signal)
{
    handled++;
}

static int masked(char **words)
{
    sigset_t blocked, none;
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    struct itimerval once = {{0, 0}, {0, 100000}};
    struct timespec span = {1, 0};
    struct epoll_event event;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGALRM);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &once, NULL);
    rest(200);
    int before = handled, result;
    if (!strcmp(words[0], "ppoll"))
        result = ppoll(NULL, 0, &span, &none);
    else if (!strcmp(words[0], "pselect"))
        result = pselect(0, NULL, NULL, NULL, &span, &none);
    else if (!strcmp(words[0], "epoll"))
        result = epoll_pwait(epoll_create1(0), &event, 1, 1000, &none);
    else
        result = sigsuspend(&none);
    printf("%d %d %d %d\n", before, result, result < 0 ? errno : 0, handled);
    return 0;
}

/* --- all CALL: MSG_WAITALL of what comes in pieces */

static void *send_pieces(void *argument)
{
    for (int i = 0; i < 4; i++) {
        rest(10);
        if (send(*(int *)argument, "abcdefgh", 8, 0) != 8)
            return NULL;
    }
    shutdown(*(int *)argument, SHUT_WR);
    return NULL;
}

static int receive_all(char **words)
{
    int ends[2];
    char bytes_of[64] = "";
    struct iovec pieces[2] = {{bytes_of, 10}, {bytes_of + 10, 14}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    pthread_t other;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 1;
    pthread_create(&other, NULL, send_pieces, &ends[1]);
    bool by_message = !strcmp(words[0], "recvmsg");
    ssize_t got = by_message ? recvmsg(ends[0], &message, MSG_WAITALL) : recv(ends[0], bytes_of, 24, MSG_WAITALL);
    ssize_t after = recv(ends[0], bytes_of + 24, 30, MSG_WAITALL); /* until the end */
    pthread_join(other, NULL);
    printf("%zd %zd %s\n", got, after, bytes_of);
    return 0;
}

/* --- pieces: more of them than the library copies, into a pipe that has no room yet */

static void *take_later(void *argument)
{
    rest(50);
    take_bytes();
    return argument;
}

static int write_pieces(char **words)
{
    struct iovec pieces[20];
    pthread_t other;
    make_full_pipe();
    for (int i = 0; i < 20; i++)
        pieces[i] = (struct iovec){bytes, 1};
    pthread_create(&other, NULL, take_later, NULL);
    printf("%zd\n", writev(wait_of.near, pieces, 20));
    fcntl(wait_of.far, F_SETFL, O_NONBLOCK);
    close(wait_of.near);
    pthread_join(other, NULL);
    return 0;
}

/* --- closed: the timer of a descriptor that was closed writes into no other file */

static int close_timer(char **words)
{
    struct itimerspec soon = {{0, 0}, {0, 100000000}}, left;
    int ends[2], timer = timerfd_create(CLOCK_MONOTONIC, 0);
    timerfd_settime(timer, 0, &soon, NULL);
    timerfd_gettime(timer, &left);
    close(timer);
    if (pipe(ends))
        return 1;
    struct pollfd file = {ends[0], POLLIN, 0};
    int ready = poll(&file, 1, 500);
    printf("%d %d %d\n", left.it_value.tv_nsec > 50000000, ends[0] == timer || ends[1] == timer, ready);
    return 0;
}

/* --- timers */

static int timers(char **words)
{
    uint64_t times = 0, sum = 0;
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec each = {{0, 100000000}, {1, 0}};
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    timerfd_settime(timer, 0, &each, NULL);
    while (sum < 5 && read(timer, &times, sizeof times) == sizeof times)
        sum += times;
    clock_gettime(CLOCK_MONOTONIC, &after);
    long milliseconds = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    printf("%ld\n", milliseconds / 100 * 100);
    return 0;
}

/* --- killed: a group of processes, which another call finds dead */

static int kill_group(char **words)
{
    pid_t children[3];
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        setpgid(children[i], children[0]);
        if (!children[i])
            for (;;)
                rest(1);
    }
    rest(20);
    kill(-children[0], SIGKILL);
    for (int i = 0, how; i < 3; i++) {
        pid_t dead = waitpid(children[i], &how, WNOHANG);
        printf("%d %d\n", dead == children[i], dead > 0 ? WTERMSIG(how) : 0);
    }
    return 0;
}

/* --- messages: recvmmsg of what comes one by one */

static void *send_messages(void *argument)
{
    for (int i = 0; i < 4; i++) {
        rest(30);
        (void)!send(*(int *)argument, "abcdefgh", (size_t)i + 1, 0);
    }
    return NULL;
}

static int receive_messages(char **words)
{
    int ends[2];
    struct iovec pieces[4];
    struct mmsghdr messages[4] = {0};
    struct timespec span = {0, 10000000};
    pthread_t other;
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends))
        return 1;
    for (int i = 0; i < 4; i++) {
        pieces[i] = (struct iovec){bytes + i * 16, 16};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &pieces[i], .msg_iovlen = 1};
    }
    pthread_create(&other, NULL, send_messages, &ends[1]);
    bool ends_early = !strcmp(words[0], "span");
    int got = recvmmsg(ends[0], messages, 4, strcmp(words[0], "one") ? 0 : MSG_WAITFORONE, ends_early ? &span : NULL);
    printf("%d", got);
    for (int i = 0; i < got; i++)
        printf(" %u", messages[i].msg_len);
    puts("");
    pthread_join(other, NULL);
    return 0;
}

/* --- faults: calls with an address that is not the program's */

static int use_wrong_addresses(char **words)
{
    long wrong = 16, result, timer = timerfd_create(CLOCK_MONOTONIC, 0);
    int ends[2];
    if (pipe(ends))
        return 1;
    const long calls[][7] = {{SYS_nanosleep, wrong},
                             {SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, wrong},
                             {SYS_clock_gettime, CLOCK_MONOTONIC, wrong},
                             {SYS_gettimeofday, wrong},
                             {SYS_futex, wrong, 0, 0},
                             {SYS_poll, wrong, 1, 100},
                             {SYS_select, 3, wrong},
                             {SYS_connect, socket(AF_INET, SOCK_STREAM, 0), wrong, 16},
                             {SYS_rt_sigaction, SIGUSR1, wrong, 0, 8},
                             {SYS_rt_sigprocmask, SIG_BLOCK, wrong, 0, 8},
                             {SYS_timerfd_settime, timer, 0, wrong},
                             {SYS_setitimer, ITIMER_REAL, wrong},
                             {SYS_writev, ends[1], wrong, 1},
                             {SYS_write, ends[1], wrong, 1},
                             {SYS_getrandom, wrong, 8, 0},
                             {SYS_openat, AT_FDCWD, wrong, 0}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const long *call = calls[i];
        errno = 0;
        result = syscall(call[0], call[1], call[2], call[3], call[4], call[5], call[6]);
        printf("%ld %s\n", result, strerrorname_np(errno));
    }
    rest(10);
    puts("on");
    return 0;
}

/* --- uuid: a number that no seed decides is the result of a call */

static int use_chance(char **words)
{
    char uuid[9] = "";
    int file = open("/proc/sys/kernel/random/uuid", O_RDONLY), memory = open("/proc/self/exe", O_RDONLY);
    if (read(file, uuid, sizeof uuid - 1) < 0)
        return 1;
    printf("%ld\n", (long)lseek(memory, strtol(uuid, NULL, 16), SEEK_SET));
    return 0;
}

/* --- counter: reads the time stamp counter */

static int read_counter(char **words)
{
#ifdef __x86_64__
    printf("%llu\n", (unsigned long long)__builtin_ia32_rdtsc());
#endif
    return 0;
}

int main(int count_of_words, char **words)
{
    static const struct {
        const char *word;
        int (*run)(char **);
    } programs[] = {{"race", race},
                    {"deadlock", deadlock},
                    {"livelock", livelock},
                    {"memory", memory},
                    {"compute", compute},
                    {"waits", await_deed},
                    {"interrupted", interrupted},
                    {"child", child_ends},
                    {"timers", timers},
                    {"looks", look_again},
                    {"uuid", use_chance},
                    {"masked", masked},
                    {"all", receive_all},
                    {"pieces", write_pieces},
                    {"closed", close_timer},
                    {"killed", kill_group},
                    {"messages", receive_messages},
                    {"faults", use_wrong_addresses},
                    {"counter", read_counter}};
    for (size_t i = 0; count_of_words > 1 && i < sizeof programs / sizeof *programs; i++)
        if (!strcmp(programs[i].word, words[1]))
            return programs[i].run(words + 2);
    return 2;
}
