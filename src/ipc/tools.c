/* Requests of the softverbs command to a directory that it does not join. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag/clean.h"
#include "ipc/node.h"
#include "ipc/place/directory.h"
#include "ipc/table.h"
#include "link/doorbell.h"

/* Returns true if no process has been in the directory, which is no error for tools that only look. */
static bool is_absent(const char *directory)
{
    char path[NODE_DIRECTORY_MAX + 32];
    snprintf(path, sizeof path, "%s/table", directory);
    return access(path, F_OK) && errno == ENOENT;
}

static void show(const struct table *table, unsigned slot, void (*visit)(const struct node_entry *, void *),
                 void *context)
{
    const struct table_slot *from = &table->file->slots[slot];
    pid_t seen = table_pid(table, slot);
    struct node_entry entry = {
        .slot = slot, .pid = seen ? seen : atomic_load(&from->pid), .alive = table_alive(table, slot)};
    memcpy(entry.program, from->program, sizeof entry.program);
    entry.program[sizeof entry.program - 1] = 0;
    clean_text(entry.program);
    if (entry.alive)
        visit(&entry, context);
}

int node_list(const char *directory, void (*visit)(const struct node_entry *, void *), void *context, char *why,
              size_t why_size)
{
    struct table *table;
    if (is_absent(directory))
        return 0;
    int error = table_open(&table, directory, false, why, why_size);
    if (error)
        return error == ESTALE ? 0 : error;
    for (unsigned slot = 0; slot < TABLE_SLOTS; slot++)
        if (atomic_load(&table->file->slots[slot].state) == TABLE_LIVE)
            show(table, slot, visit, context);
    table_close(table);
    return 0;
}

int node_sweep(const char *directory)
{
    struct table *table;
    char why[256];
    if (is_absent(directory))
        return 0;
    int error = table_open(&table, directory, false, why, sizeof why);
    if (error)
        return error == ESTALE ? 0 : -error;
    int count = table_sweep_now(table);
    table_close(table);
    return count;
}

/* Checks that a report is memory, which has seals. No file with seals can keep its reader waiting, or has no end. */
static int check_report(int report, off_t *size)
{
    enum { REPORT_MOST = 1 << 29 };
    struct stat status;
    if (fcntl(report, F_GET_SEALS) < 0)
        return EPROTO;
    if (fstat(report, &status))
        return errno;
    *size = status.st_size;
    return *size > REPORT_MOST ? EFBIG : 0;
}

static int copy_all(int from, off_t size, int to)
{
    char bytes[4096];
    ssize_t length = 0;
    off_t offset = 0;
    while (offset < size && (length = pread(from, bytes, sizeof bytes, offset)) > 0) {
        for (ssize_t done = 0, some; done < length; done += some)
            if ((some = write(to, bytes + done, (size_t)(length - done))) < 0)
                return errno;
        offset += length;
    }
    return length < 0 ? errno : 0;
}

/* Waits for the descriptor of the report. */
static int take_report(int socket, int out, int milliseconds)
{
    struct pollfd wait = {.fd = socket, .events = POLLIN};
    int report, ready = poll(&wait, 1, milliseconds);
    if (ready <= 0)
        return ready ? errno : ETIMEDOUT;
    int error = control_take_descriptor(socket, &report);
    if (error)
        return error;
    off_t size = 0;
    error = check_report(report, &size);
    if (!error)
        error = copy_all(report, size, out);
    close(report);
    return error;
}

static int ask(const char *directory, unsigned slot, uint32_t generation, const char *request, int out,
               int milliseconds)
{
    struct control_message message = {
        .magic = CONTROL_MAGIC, .layout = CONTROL_LAYOUT, .kind = CONTROL_REPORT, .to_generation = generation};
    char name[CONTROL_NAME_MAX];
    table_socket_name(directory, slot, name);
    int error = directory_owns_socket(name), ends[2], sender = -1;
    if (error)
        return error;
    sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sender < 0)
        return errno;
    error = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) ? errno : 0;
    if (!error) {
        send(ends[0], request, strlen(request), MSG_NOSIGNAL);
        error = control_send(sender, name, &message, ends[1]);
        close(ends[1]);
        if (!error)
            error = take_report(ends[0], out, milliseconds);
        close(ends[0]);
    }
    close(sender);
    return error == EAGAIN ? ETIMEDOUT : error; /* the process's queue is full: it has not looked for long */
}

int node_ask(const char *directory, unsigned slot, const char *request, int out_fd, int milliseconds)
{
    struct table *table;
    char why[256];
    if (slot >= TABLE_SLOTS)
        return EINVAL;
    int error = table_open(&table, directory, false, why, sizeof why);
    if (error)
        return error;
    uint32_t generation = atomic_load(&table->file->slots[slot].generation);
    if (table_is(table, slot, generation))
        error = ask(table->directory, slot, generation, request, out_fd, milliseconds);
    else
        error = ESRCH;
    table_close(table);
    return error;
}
