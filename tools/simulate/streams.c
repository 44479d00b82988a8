#include "simulate/streams.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/random.h"

enum { PIECE = 1 << 16 };

static const char *const names[STREAMS] = {"/dev/shm/softverbs-sim.out", "/dev/shm/softverbs-sim.error"};

bool streams_make(struct streams *streams)
{
    *streams = (struct streams){0};
    for (int i = 0; i < STREAMS; i++) {
        streams->files[i] = open(names[i], O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (streams->files[i] < 0)
            return false;
    }
    return true;
}

void streams_take(const struct streams *streams)
{
    for (int i = 0; i < STREAMS; i++)
        dup2(streams->files[i], STDOUT_FILENO + i);
}

static void write_all(int to, const char *piece, ssize_t length)
{
    while (length > 0) {
        ssize_t written = write(to, piece, (size_t)length);
        if (written <= 0)
            return;
        piece += written;
        length -= written;
    }
}

void streams_pass_on(struct streams *streams)
{
    static char piece[PIECE];
    ssize_t length;
    for (int i = 0; i < STREAMS; i++)
        while ((length = pread(streams->files[i], piece, sizeof piece, streams->written[i])) > 0) {
            streams->hash[i] = random_mix(streams->hash[i], piece, (size_t)length);
            write_all(STDOUT_FILENO + i, piece, length);
            streams->written[i] += length;
        }
}
