/* Features that some tests of the tree need and an emulator of processors (qemu-user) may lack. One line each, the name
 * and the result: arm64.sh runs this natively and emulated, and a test that fails emulated is explained where the two
 * differ. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void multicast_all(void)
{
    int none = 0, udp = socket(AF_INET, SOCK_DGRAM, 0);
    printf("multicast %d\n", setsockopt(udp, IPPROTO_IP, IP_MULTICAST_ALL, &none, sizeof none) ? errno : 0);
}

/* Reads the process's own memory, which is always allowed. */
static void read_memory(void)
{
    char from = 7, to = 0;
    struct iovec source = {&from, 1}, target = {&to, 1};
    long got = process_vm_readv(getpid(), &target, 1, &source, 1, 0);
    printf("memory %d\n", got == 1 && to == 7 ? 0 : errno);
}

/* The fault again, as a signal that waits until its handler returns. */
static void send_again(int number, siginfo_t *info, void *context)
{
    sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, info);
    (void)context;
}

static void fault(void)
{
    volatile char *nothing = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = send_again, .sa_flags = SA_SIGINFO}, NULL);
    *nothing = 1;
    _exit(0);
}

static void *lock_and_end(void *mutex)
{
    pthread_mutex_lock(mutex);
    return NULL;
}

/* The kernel reports to the next thread that the holder of the mutex is dead. */
static void inherit_mutex(void)
{
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    pthread_create(&thread, NULL, lock_and_end, &mutex);
    pthread_join(thread, NULL);
    int error = pthread_mutex_trylock(&mutex);
    printf("robust %d\n", error == EOWNERDEAD ? 0 : error);
}

static int status_of(void (*body)(void))
{
    int status;
    pid_t child = fork();
    if (!child)
        body();
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void be_traced(void)
{
    _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? errno : 0);
}

/* The call that a thread waits in, as /proc shows it: the processor's own number, or the machine's below. */
static void wait_in_call(void)
{
    pid_t child = fork();
    for (; !child;)
        syscall(SYS_ppoll, NULL, 0L, NULL, NULL, 0L);
    char path[32];
    long number = -1;
    snprintf(path, sizeof path, "/proc/%d/syscall", (int)child);
    for (int i = 0; i < 1000 && number != SYS_ppoll; i++, usleep(1000)) {
        FILE *file = fopen(path, "r");
        if (file && fscanf(file, "%ld", &number) != 1)
            number = -1;
        if (file)
            fclose(file);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    printf("call %ld\n", number == SYS_ppoll ? 0 : number);
}

int main(void)
{
    multicast_all();
    read_memory();
    inherit_mutex();
    fflush(stdout);
    wait_in_call();
    fflush(stdout);
    printf("signal %d\n", status_of(fault));
    fflush(stdout);
    printf("trace %d\n", status_of(be_traced));
    return 0;
}
