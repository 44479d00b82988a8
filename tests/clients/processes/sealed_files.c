/* Every file that one process gets from another or finds in their meeting place, as a peer could use it. Usage: sealed.
 * Two processes exchange messages; each keeps all descriptors that its messages carry, and tries to map them writable.
 * docs/evidence/one-sided.md has the table that this holds the library to: a file that is not in it fails the test.
 * Exit status 0, or 1 with a sentence. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "endpoint.h"

enum { KEPT = 64, FUTURE_WRITE = 0x10 /* F_SEAL_FUTURE_WRITE */ };

/* --- what the library sends and receives passes through here (export_dynamic) */

static int kept[KEPT];
static atomic_uint kept_count;

static void keep_all(struct msghdr *message)
{
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at))
        for (size_t i = 0; at->cmsg_type == SCM_RIGHTS && i < (at->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(at) + i * sizeof descriptor, sizeof descriptor);
            unsigned place = atomic_fetch_add(&kept_count, 1);
            if (place < KEPT)
                kept[place] = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
        }
}

__attribute__((visibility("default"))) ssize_t recvmsg(int socket, struct msghdr *message, int flags)
{
    ssize_t length = syscall(SYS_recvmsg, socket, message, flags);
    if (length >= 0)
        keep_all(message);
    return length;
}

__attribute__((visibility("default"))) ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
    keep_all((struct msghdr *)message);
    return syscall(SYS_sendmsg, socket, message, flags);
}

/* --- what a peer may do with it */

/* One row of the table in docs/evidence/one-sided.md. */
static const struct row {
    const char *name;
    int seals;
    bool writable;
} rows[] = {
    {"/memfd:softverbs-keys (deleted)", F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | FUTURE_WRITE, false},
    {"/memfd:softverbs (deleted)", F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW, true},
    {"/memfd:softverbs context (deleted)", F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, false},
};

enum { ROWS = sizeof rows / sizeof *rows };

static unsigned seen[ROWS];

static bool is_mapped(int descriptor, size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (at != MAP_FAILED)
        munmap(at, size);
    return at != MAP_FAILED;
}

/* The descriptor as it arrived, and opened anew with all rights that the file's owner has. */
static bool is_writable(int descriptor, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    int again = open(path, O_RDWR | O_CLOEXEC);
    bool writable = is_mapped(descriptor, size) || (again >= 0 && is_mapped(again, size));
    if (again >= 0)
        close(again);
    return writable;
}

static void expect_row(int descriptor, const struct row *row)
{
    struct stat status;
    int seals = fcntl(descriptor, F_GET_SEALS);
    if (fstat(descriptor, &status) || (seals & row->seals) != row->seals)
        die("%s has the seals 0x%x, not 0x%x", row->name, (unsigned)seals, (unsigned)row->seals);
    if (is_writable(descriptor, (size_t)status.st_size) != row->writable)
        die("%s can%s be mapped writable", row->name, row->writable ? "'t" : "");
    if (!row->writable && (pwrite(descriptor, "x", 1, 0) == 1 || !ftruncate(descriptor, 0)))
        die("%s can be written", row->name);
}

static void expect_listed(int descriptor)
{
    char path[64], name[256];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(path, name, sizeof name - 1);
    name[length > 0 ? length : 0] = 0;
    for (unsigned i = 0; i < ROWS; i++)
        if (!strcmp(name, rows[i].name)) {
            expect_row(descriptor, &rows[i]);
            seen[i]++;
            return;
        }
    die("%s went from one process to the other; docs/evidence/one-sided.md does not have it", name);
}

/* The table is the one file there, for all processes of the directory to write; the others are sockets. */
static void expect_directory(void)
{
    struct stat status;
    const char *directory = getenv("SOFTVERBS_DIR");
    DIR *stream = directory ? opendir(directory) : NULL;
    if (!stream)
        die("no directory");
    for (const struct dirent *entry; (entry = readdir(stream));) {
        bool named = entry->d_name[0] != '.' && !fstatat(dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW);
        if (named && !S_ISSOCK(status.st_mode) && strcmp(entry->d_name, "table") != 0)
            die("%s lies in the directory; docs/evidence/one-sided.md does not have it", entry->d_name);
        if (named && status.st_mode & 077)
            die("%s has the mode %o", entry->d_name, status.st_mode & 07777);
    }
    closedir(stream);
}

/* --- two processes that know each other */

static struct meeting {
    struct address addresses[2];
    atomic_uint stages[2];
} * meeting;

static void exchange(int self)
{
    static char memory[4096];
    struct endpoint endpoint;
    struct ibv_wc wc[2];
    endpoint_open(&endpoint, 8);
    struct ibv_qp *qp = endpoint_create_qp(&endpoint, IBV_QPT_RC, 4, 4);
    struct ibv_mr *mr = endpoint_register(&endpoint, memory, sizeof memory);
    meeting->addresses[self] = endpoint_address(&endpoint, qp, mr);
    endpoint_meet(meeting->stages, self, 1, PATIENCE_SECONDS);
    endpoint_connect(qp, &meeting->addresses[!self], 14);
    struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    if (ibv_post_recv(qp, &receive, &bad_receive))
        die("ibv_post_recv");
    endpoint_meet(meeting->stages, self, 2, PATIENCE_SECONDS);
    if (ibv_post_send(qp, &send, &bad))
        die("ibv_post_send");
    for (int done = 0, some; done < 2; done += some)
        if ((some = endpoint_wait(&endpoint, wc, 2, PATIENCE_SECONDS)) < 1 || wc[0].status)
            die("nothing is exchanged");
    endpoint_meet(meeting->stages, self, 3, PATIENCE_SECONDS);
    for (unsigned i = 0; i < atomic_load(&kept_count) && i < KEPT; i++)
        expect_listed(kept[i]);
    if (!seen[0] || !seen[1])
        die("of %u descriptors %u were what is published, and %u rings", atomic_load(&kept_count), seen[0], seen[1]);
    expect_listed(endpoint.context->cmd_fd);
    expect_directory();
    endpoint_meet(meeting->stages, self, 4, PATIENCE_SECONDS);
}

int main(void)
{
    char directory[] = "/tmp/sealed.XXXXXX";
    int status;
    if (!mkdtemp(directory) || setenv("SOFTVERBS_DIR", directory, 1))
        die("mkdtemp");
    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        exchange(0);
        _exit(0);
    }
    pid_t other = fork();
    if (!other) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        exchange(1);
        _exit(0);
    }
    int wrong = 0;
    for (int i = 0; i < 2; i++)
        wrong |= wait(&status) < 0 || status;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command) || wrong ? 1 : 0;
}
