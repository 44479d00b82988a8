/* Half of the round trip of a datagram between two programs that do nothing else: what any
 * transport over sockets takes at least. Usage: round_trip serve PORT | round_trip ADDRESS PORT COUNT. Prints the
 * shortest and the median, in microseconds. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "measure.h"

enum { BYTES = 28 }; /* headers, 8 bytes, ICRC */

static void receive(int from, struct sockaddr_in *sender)
{
    char bytes[BYTES];
    socklen_t length = sizeof *sender;
    if (recvfrom(from, bytes, sizeof bytes, 0, (struct sockaddr *)sender, &length) < 0)
        exit(1);
}

static void answer(int end, const struct sockaddr_in *to)
{
    static const char bytes[BYTES];
    if (sendto(end, bytes, sizeof bytes, 0, (const struct sockaddr *)to, sizeof *to) < 0)
        exit(1);
}

static void ask(int end, const struct sockaddr_in *to, unsigned count)
{
    struct sockaddr_in sender;
    double *halves = calloc(count, sizeof *halves);
    if (!halves)
        exit(1);
    for (unsigned i = 0; i < count; i++) {
        double start = measure_seconds();
        answer(end, to);
        receive(end, &sender);
        halves[i] = (measure_seconds() - start) / 2;
    }
    double middle = measure_median(halves, count);
    printf("%.2f %.2f\n", halves[0] * 1e6, middle * 1e6);
    free(halves);
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET}, client;
    int end = socket(AF_INET, SOCK_DGRAM, 0);
    if (argc < 3 || end < 0)
        return 2;
    address.sin_port = htons((uint16_t)atoi(argv[2]));
    if (argc > 3) {
        address.sin_addr.s_addr = inet_addr(argv[1]);
        ask(end, &address, (unsigned)atoi(argv[3]));
        return 0;
    }
    if (bind(end, (struct sockaddr *)&address, sizeof address))
        return 1;
    for (;;) {
        receive(end, &client);
        answer(end, &client);
    }
}
