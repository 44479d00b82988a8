#include "ipc/testing/node_rig.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void rig_directory(char *to)
{
    const char *base = getenv("TMPDIR");
    snprintf(to, NODE_DIRECTORY_MAX + 1, "%s/softverbs-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(to))
        abort();
}

static void visit(const char *directory, const char *start, void (*each)(const char *path, void *), void *context)
{
    char path[512];
    struct dirent *entry;
    DIR *stream = opendir(directory);
    while (stream && (entry = readdir(stream)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
            !strncmp(entry->d_name, start, strlen(start))) {
            snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
            each(path, context);
        }
    if (stream)
        closedir(stream);
}

static void remove_one(const char *path, void *context)
{
    unlink(path);
}

static void count_one(const char *path, void *context)
{
    ++*(unsigned *)context;
}

void rig_remove(const char *directory)
{
    visit(directory, "", remove_one, NULL);
    rmdir(directory);
}

unsigned rig_count(const char *directory, const char *start)
{
    unsigned count = 0;
    visit(directory, start, count_one, &count);
    return count;
}

/* meson.build wraps the calls; files have 64 bits here. */
static atomic_bool no_memory;
void *__real_mmap64(void *, size_t, int, int, int, off_t);
void *__wrap_mmap64(void *, size_t, int, int, int, off_t);

void *__wrap_mmap64(void *at, size_t length, int protection, int flags, int file, off_t offset)
{
    if (!atomic_load(&no_memory))
        return __real_mmap64(at, length, protection, flags, file, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

void rig_refuse_memory(bool refuse)
{
    atomic_store(&no_memory, refuse);
}

static struct node *joined;

struct node *rig_open(const char *directory)
{
    char why[256];
    if (!node_open(&joined, directory, why, sizeof why))
        return joined;
    fprintf(stderr, "%s\n", why);
    _exit(99);
}

void rig_close(struct node *node)
{
    joined = NULL;
    node_close(node);
}

pid_t rig_start(int (*body)(const char *, void *), const char *directory, void *context)
{
    pid_t process = fork();
    if (process)
        return process;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when the test fails */
    if (joined)
        node_abandon(joined);
    joined = NULL;
    _exit(body(directory, context));
}

int rig_wait(pid_t process, int seconds)
{
    int status;
    for (int i = 0; i < seconds * 1000; i++) {
        if (waitpid(process, &status, WNOHANG) == process)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    kill(process, SIGKILL);
    waitpid(process, &status, 0);
    return 255;
}

void *rig_share(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

void rig_unshare(void *memory, size_t size)
{
    munmap(memory, size);
}

unsigned rig_turn(struct node *node, node_take *take, void *context)
{
    struct pollfd wait = {.fd = node_fd(node), .events = POLLIN};
    if (poll(&wait, 1, 0) == 1)
        node_service(node, NULL, NULL);
    return node_receive(node, take, context, 16);
}

unsigned rig_sleep_and_turn(struct node *node, node_take *take, void *context, int milliseconds)
{
    struct pollfd wait = {.fd = node_fd(node), .events = POLLIN};
    if (node_sleep(node))
        poll(&wait, 1, milliseconds);
    node_awake(node);
    return rig_turn(node, take, context);
}

bool rig_send(struct node *node, uint32_t number, const void *bytes, uint32_t length, bool by_reference,
              node_take *take, void *context)
{
    static const uint8_t headers[12] = {1, 2, 3, 4};
    struct iovec piece = {(void *)bytes, length};
    struct frame frame = {FRAME_ROCE, sizeof headers, headers, {length, 1, &piece, by_reference, NULL, NULL}};
    struct peer *peer = node_find(node, number);
    bool sent = false;
    if (!peer)
        return false;
    while (!sent && !peer->gone) {
        const struct link_operations *link = peer->link->operations;
        link->begin(peer->link);
        sent = link->ready(peer->link) && link->send(peer->link, &frame);
        link->end(peer->link);
        if (!sent)
            rig_sleep_and_turn(node, take, context, 1000);
    }
    node_put(node, peer);
    return sent;
}
