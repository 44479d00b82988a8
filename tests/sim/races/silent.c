/* Connects to a port of this host COUNT times, sends nothing, and keeps the connections for SECONDS: `silent PORT COUNT
 * SECONDS`. So a server that serves one connection after the other is busy. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    struct sockaddr_in server = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < atoi(argv[2]); i++)
        if (connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&server, sizeof server))
            return 2;
    sleep((unsigned)atoi(argv[3]));
    return 0;
}
