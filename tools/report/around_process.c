#include "report/around_process.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/user.h"
#include "script/live/requests.h"

/* Another process may have taken the name, or had the number before. */
static bool is_process(int socket, long pid)
{
    struct ucred owner;
    socklen_t size = sizeof owner;
    return !getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &owner, &size) && owner.pid == pid &&
           user_owns_process(owner.uid, owner.pid);
}

/* -1: it does not listen. */
static int connect_to(long pid)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, REQUESTS_SOCKET, pid);
    int end = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (end >= 0 && !connect(end, (struct sockaddr *)&name, size) && is_process(end, pid))
        return end;
    if (end >= 0)
        close(end);
    return -1;
}

bool around_process_listens(long pid)
{
    int end = connect_to(pid);
    if (end >= 0)
        close(end);
    return end >= 0;
}

/* Reads messages until the other end closes; false: it was silent for too long. */
static bool read_all(int end, FILE *to, int milliseconds)
{
    char part[REQUESTS_PART];
    struct pollfd wait = {.fd = end, .events = POLLIN};
    ssize_t length = -1;
    while (poll(&wait, 1, milliseconds) > 0 && (length = recv(end, part, sizeof part, 0)) > 0)
        fwrite(part, 1, (size_t)length, to);
    return !length;
}

json_t *around_process_ask(long pid, const char *request, int milliseconds)
{
    char *text = NULL;
    size_t size = 0;
    json_t *answer = NULL;
    int end = connect_to(pid);
    FILE *to = end >= 0 ? open_memstream(&text, &size) : NULL;
    bool whole = to && send(end, request, strlen(request), MSG_NOSIGNAL) > 0 && read_all(end, to, milliseconds);
    if (to)
        fclose(to);
    if (whole)
        answer = json_loadb(text, size, 0, NULL);
    free(text);
    if (end >= 0)
        close(end);
    if (json_is_object(answer))
        return answer;
    json_decref(answer);
    return NULL;
}
