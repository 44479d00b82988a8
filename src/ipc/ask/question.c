#include "ipc/ask/question.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/uncancelled.h"
#include "diag/clean.h"
#include "ipc/place/directory.h"
#include "ipc/state.h"

/* Writes the request into the socket before the socket is sent. */
static int send_end(struct node *node, const struct record *record, const char *name, const char *request,
                    const int ends[2])
{
    const struct control_message message = {.magic = CONTROL_MAGIC,
                                            .layout = CONTROL_LAYOUT,
                                            .kind = CONTROL_REPORT,
                                            .slot = (uint16_t)node->slot,
                                            .to_generation = record->generation};
    size_t length = strlen(request);
    if (send(ends[0], request, length, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)length)
        return EIO;
    return control_send(node->socket, name, &message, ends[1]);
}

static int ask(struct node *node, const struct record *record, const char *request, struct question *question)
{
    char name[CONTROL_NAME_MAX];
    int ends[2];
    table_socket_name(node->directory, record->peer.slot, name);
    int error = directory_owns_socket(name);
    if (!error && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
        error = errno;
    if (error)
        return error;
    error = send_end(node, record, name, request, ends);
    close(ends[1]);
    if (error)
        close(ends[0]);
    else
        question->socket = descriptor_raise(ends[0]);
    return error;
}

int question_ask(struct node *node, const struct peer *peer, const char *request, struct question *question)
{
    question->socket = -1;
    if (atomic_load(&node->left))
        return ENOTCONN;
    if (peer->gone)
        return ENOENT;
    int saved = errno, before = uncancelled_begin();
    int error = ask(node, (const struct record *)peer, request, question);
    uncancelled_end(before);
    errno = saved;
    return error;
}

/* Only memory has seals; no file with seals could keep its reader waiting. */
static int read_memory(int memory, void *to, size_t size)
{
    struct stat status;
    if (fcntl(memory, F_GET_SEALS) < 0 || fstat(memory, &status) || status.st_size != (off_t)size)
        return EPROTO;
    return pread(memory, to, size, 0) == (ssize_t)size ? 0 : EPROTO;
}

int question_look(struct question *question, void *to, size_t size)
{
    int memory, saved = errno, before = uncancelled_begin();
    int error = control_take_descriptor(question->socket, &memory);
    if (!error)
        error = read_memory(memory, to, size);
    descriptor_close(&memory);
    uncancelled_end(before);
    errno = saved;
    return error == EWOULDBLOCK ? EAGAIN : error;
}

void question_end(struct question *question)
{
    int before = uncancelled_begin();
    descriptor_close(&question->socket);
    uncancelled_end(before);
}

pid_t question_of(struct node *node, const struct peer *peer, char program[QUESTION_PROGRAM])
{
    _Static_assert((int)QUESTION_PROGRAM == (int)TABLE_PROGRAM_MAX, "one size in two headers");
    memcpy(program, node->table->file->slots[peer->slot].program, QUESTION_PROGRAM);
    program[QUESTION_PROGRAM - 1] = 0;
    clean_text(program);
    return peer->pid;
}
