/* Serves connections in turn, each with a deadline: a reader that sends nothing keeps others waiting for a second. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "command.h"
#include "counters/prometheus.h"
#include "report/reports.h"

enum { REQUEST_MOST = 4096, WAITING = 16 };

static void send_all(int fd, const char *text, size_t length)
{
    while (length) {
        ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        text += sent;
        length -= (size_t)sent;
    }
}

static void answer(int fd, const char *status, const char *type, const char *text, size_t length)
{
    char head[256];
    int used = snprintf(head, sizeof head,
                        "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", status,
                        type, length);
    send_all(fd, head, (size_t)used);
    send_all(fd, text, length);
}

static void answer_sentence(int fd, const char *status, const char *text)
{
    answer(fd, status, "text/plain; charset=utf-8", text, strlen(text));
}

static void answer_counts(int fd, const char *directory)
{
    char why[512], *text = NULL;
    size_t length = 0;
    json_t *reports = reports_collect(directory, why, sizeof why);
    if (!reports) {
        answer_sentence(fd, "500 Internal Server Error", why);
        return;
    }
    FILE *out = open_memstream(&text, &length);
    if (out) {
        prometheus_print(out, reports);
        fclose(out);
    }
    answer(fd, "200 OK", "text/plain; version=0.0.4; charset=utf-8", text ? text : "", length);
    free(text);
    json_decref(reports);
}

/* Reads up to the empty line after the head, or as much as arrives in time. */
static void read_request(int fd, char request[REQUEST_MOST + 1])
{
    size_t used = 0;
    ssize_t got = 1;
    while (used < REQUEST_MOST && got > 0) {
        got = recv(fd, request + used, REQUEST_MOST - used, 0);
        used += got > 0 ? (size_t)got : 0;
        request[used] = 0;
        if (strstr(request, "\r\n\r\n") || strstr(request, "\n\n"))
            break;
    }
}

/* A page of another site in a browser may ask for the counters by a name that leads here. Such requests are refused, as
 * they name another host. */
static bool names_this_host(const char *request)
{
    const char *host = strcasestr(request, "\nhost:");
    if (!host)
        return true;
    host += strlen("\nhost:");
    host += strspn(host, " \t");
    return !strncmp(host, "127.0.0.1", 9) || !strncasecmp(host, "localhost", 9);
}

static void serve(int fd, const char *directory)
{
    char request[REQUEST_MOST + 1] = "";
    struct timeval patience = {.tv_sec = 1};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    read_request(fd, request);
    if (!names_this_host(request))
        answer_sentence(fd, "403 Forbidden", "The counters are for 127.0.0.1 and localhost.\n");
    else if (!strncmp(request, "GET /metrics", 12) && strchr(" ?", request[12]))
        answer_counts(fd, directory);
    else if (!strncmp(request, "GET / ", 6))
        answer_sentence(fd, "200 OK", "softverbs: /metrics\n");
    else
        answer_sentence(fd, "404 Not Found", "The only page is /metrics.\n");
    close(fd);
}

static int listen_at(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    socklen_t size = sizeof address;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) || listen(fd, WAITING) ||
        getsockname(fd, (struct sockaddr *)&address, &size)) {
        complain("127.0.0.1:%u can't be listened on: %s.", *port, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    *port = ntohs(address.sin_port);
    return fd;
}

int prometheus_serve(const char *directory, unsigned port)
{
    int fd = listen_at(&port);
    if (fd < 0)
        return EXIT_NEGATIVE;
    fprintf(stderr, "softverbs: http://127.0.0.1:%u/metrics\n", port);
    for (;;) {
        int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (connection >= 0)
            serve(connection, directory);
        else if (errno != EINTR && errno != ECONNABORTED)
            sleep(1); /* no descriptors or no memory */
    }
}
