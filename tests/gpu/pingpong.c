/* Messages between memory of a GPU and of a GPU, of a GPU and of the host, and of the host, two processes, each byte
 * compared; and the time of the driver's copies alone, of one process. A GPU takes turns between processes; of GPU and
 * host, only one process copies. On the driver of the machine, or on the fake one. Prints a table. Usage: gpu_pingpong
 * [ROUNDS] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "pair.h"

enum { LONGEST = 16 << 20 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* One copy out of the GPU and one into it, each waited for: what a message costs at the least. */
static double copies(struct pair *pair, void *pinned, uint32_t length, int rounds)
{
    double begun = seconds();
    for (int i = 0; i < rounds; i++) {
        cuMemcpyDtoHAsync_v2(pinned, pair->memory[GPU], length, pair->stream);
        cuStreamSynchronize(pair->stream);
        cuMemcpyHtoDAsync_v2(pair->memory[GPU], pinned, length, pair->stream);
        cuStreamSynchronize(pair->stream);
    }
    return (seconds() - begun) / rounds;
}

static bool one_way(struct pair *pair, bool sends, struct ibv_sge *sge, int kind)
{
    if (!sends)
        return pair_wait(pair).status == IBV_WC_SUCCESS;
    pair_post(pair, IBV_WR_SEND, sge, 1, kind, 0);
    return pair_wait(pair).status == IBV_WC_SUCCESS;
}

/* The kinds of memory of both sides are the digits of `kinds`: GPU << 1 is the first's. The seconds of one way; *good:
 * each message arrived, and the last as it was sent. */
static double play(struct pair *pair, int kinds, uint32_t length, int rounds, bool *good)
{
    int kind = pair->first ? kinds >> 1 : kinds & 1;
    struct ibv_sge from = pair_sge(pair, kind, 0, length), to = pair_sge(pair, kind, LONGEST, length);
    pair_fill(pair, kind, 0, length, pair->first ? length + 1 : length + 2);
    pair_fill(pair, kind, LONGEST, length, 0);
    pair_receive(pair, &to, 1);
    pair_meet(pair);
    double begun = seconds();
    for (int i = 0; i < rounds; i++) {
        *good = one_way(pair, pair->first, &from, kind) && *good;
        if (!pair->first && i + 1 < rounds)
            pair_receive(pair, &to, 1);
        *good = one_way(pair, !pair->first, &from, kind) && *good;
        if (pair->first && i + 1 < rounds)
            pair_receive(pair, &to, 1);
    }
    double each = (seconds() - begun) / rounds / 2;
    pair_meet(pair);
    *good = pair_holds(pair, kind, LONGEST, length, pair->first ? length + 2 : length + 1) && *good;
    return each;
}

int main(int argc, char **argv)
{
    enum { BOTH_GPU = GPU << 1 | GPU, ONE_GPU = GPU << 1 | HOST, BOTH_HOST = HOST };
    static const uint32_t lengths[] = {8, 4096, 65536, 1 << 20, 2 << 20, LONGEST};
    int most = argc > 1 ? atoi(argv[1]) : 200;
    struct pair pair;
    void *pinned;
    bool good = true;
    pair_open(&pair);
    cuMemHostAlloc(&pinned, LONGEST, 1);
    if (pair.first)
        printf("     bytes   GPU to GPU, us    GB/s   to the host and back   between hosts   two copies   ratio%s\n",
               fake_cuda_take_copies ? "  copies, KiB each, most in flight" : "");
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int rounds = lengths[i] > 65536 ? most / 10 + 1 : most;
        play(&pair, BOTH_GPU, lengths[i], rounds / 10 + 1, &good);
        struct fake_cuda_copies copies_made = {0};
        if (fake_cuda_take_copies)
            fake_cuda_take_copies();
        double gpu = play(&pair, BOTH_GPU, lengths[i], rounds, &good);
        if (fake_cuda_take_copies)
            copies_made = fake_cuda_take_copies();
        double one = play(&pair, ONE_GPU, lengths[i], rounds, &good);
        double host = play(&pair, BOTH_HOST, lengths[i], rounds, &good);
        double alone = pair.first ? copies(&pair, pinned, lengths[i], rounds) : 0;
        pair_meet(&pair);
        if (pair.first)
            printf("%10u %16.1f %7.2f %22.1f %15.1f %12.1f %7.2f", lengths[i], gpu * 1e6, lengths[i] / gpu * 1e-9,
                   one * 2e6, host * 2e6, alone * 1e6, one * 2 / alone);
        if (pair.first && copies_made.count)
            printf("  %6.1f %9.2f %15u", (double)copies_made.count / rounds / 2,
                   (double)copies_made.bytes / copies_made.count / 1024, copies_made.most_in_flight);
        if (pair.first)
            printf("\n");
        fflush(stdout);
    }
    good = pair_report(&pair, good, "every byte is right");
    return !pair_close(&pair, good);
}
