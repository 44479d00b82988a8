#include "lab/lab_control.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lab/plan.h"

static const struct sockaddr_un place = {.sun_family = AF_UNIX, .sun_path = LAB_STATE "/control"};

enum { HASTE = 200 }; /* milliseconds that a request may come after its connection */

int lab_control_listen(void)
{
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return listener < 0 || bind(listener, (const struct sockaddr *)&place, sizeof place) || listen(listener, 16)
               ? -1
               : listener;
}

void lab_control_serve(int listener, bool (*answer)(void *, const char *, char *, size_t), void *context)
{
    static char reply[LAB_REPLY_MOST];
    char request[LAB_REQUEST_MOST];
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    struct pollfd ready = {.fd = client, .events = POLLIN};
    ssize_t length = client >= 0 && poll(&ready, 1, HASTE) > 0 ? recv(client, request, sizeof request - 1, 0) : -1;
    if (length >= 0) {
        request[length] = 0;
        reply[1] = 0;
        reply[0] = answer(context, request, reply + 1, sizeof reply - 1) ? '+' : '-';
        (void)!send(client, reply, 1 + strlen(reply + 1), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (client >= 0)
        close(client);
}

int lab_control_ask(const char *request, char *reply, size_t size)
{
    int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    bool asked = client >= 0 && !connect(client, (const struct sockaddr *)&place, sizeof place) &&
                 send(client, request, strlen(request), MSG_NOSIGNAL) >= 0;
    ssize_t length = asked ? recv(client, reply, size - 1, 0) : -1;
    if (client >= 0)
        close(client);
    if (length < 1)
        return -1;
    bool done = *reply == '+';
    memmove(reply, reply + 1, (size_t)length - 1);
    reply[length - 1] = 0;
    return done;
}
