#include "chance.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "answer.h"
#include "proc.h"
#include "raw.h"
#include "sim/dice.h"
#include "token.h"

enum {
    PORTS_FROM = 40000,
    PORTS = 20000,
    PORT_TRIES = 100,
    DEVICE_BYTES = 1 << 16, /* of an opened /dev/urandom */
};

static void fill(uint8_t *to, size_t size)
{
    uint64_t dice = token_run->seed * 0x100000001b3ull ^ token_run->draws++ << 20;
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)sim_draw(&dice);
}

long answer_getrandom(struct caught *call)
{
    fill((void *)call->argument[0], (size_t)call->argument[1]);
    return call->argument[1];
}

static bool is_random_device(const char *path)
{
    return path && (!strcmp(path, "/dev/urandom") || !strcmp(path, "/dev/random"));
}

static long open_random(long flags)
{
    static uint8_t bytes[DEVICE_BYTES];
    long file = RAW(memfd_create, "random", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
    fill(bytes, sizeof bytes);
    RAW(write, file, bytes, sizeof bytes);
    RAW(lseek, file, 0, 0);
    return file;
}

/* A descriptor of a file whose text is the run's; negative: the path is another one's. */
static long open_own(const char *path, long flags)
{
    return is_random_device(path) ? open_random(flags) : proc_open(path, flags);
}

long answer_open(struct caught *call)
{
    const long *argument = call->argument;
    long own = open_own((void *)argument[0], argument[1]);
    return own >= 0 ? own : RAW(open, argument[0], argument[1], argument[2]);
}

long answer_openat(struct caught *call)
{
    const long *argument = call->argument;
    long own = open_own((void *)argument[1], argument[2]);
    return own >= 0 ? own : RAW(openat, argument[0], argument[1], argument[2], argument[3]);
}

/* --- ports */

/* The port of an address of the internet; NULL: it is another address. Both families have it at one place. */
static in_port_t *port_of(struct sockaddr_storage *name)
{
    bool has_port = name->ss_family == AF_INET || name->ss_family == AF_INET6;
    return has_port ? &((struct sockaddr_in *)name)->sin_port : NULL;
}

static uint16_t swap(uint64_t port)
{
    return (uint16_t)(port << 8 | (port >> 8 & 0xff));
}

static long bind_by_count(int descriptor, struct sockaddr_storage *name, long length)
{
    long result = -EADDRINUSE;
    for (int i = 0; i < PORT_TRIES && result == -EADDRINUSE; i++) {
        *port_of(name) = swap(PORTS_FROM + token_run->ports++ % PORTS);
        result = RAW(bind, descriptor, name, length);
    }
    return result;
}

void chance_bind(int descriptor)
{
    struct sockaddr_storage name = {0};
    int length = sizeof name;
    if (!RAW(getsockname, descriptor, &name, &length) && port_of(&name) && !*port_of(&name))
        bind_by_count(descriptor, &name, length);
}

long answer_bind(struct caught *call)
{
    struct sockaddr_storage name = {0};
    long length = call->argument[2];
    if (length < (long)sizeof(struct sockaddr_in) || length > (long)sizeof name)
        return RAW(bind, call->argument[0], call->argument[1], length);
    memcpy(&name, (void *)call->argument[1], (size_t)length);
    if (!port_of(&name) || *port_of(&name))
        return RAW(bind, call->argument[0], call->argument[1], length);
    return bind_by_count((int)call->argument[0], &name, length);
}

long answer_listen(struct caught *call)
{
    chance_bind((int)call->argument[0]);
    return RAW(listen, call->argument[0], call->argument[1]);
}
