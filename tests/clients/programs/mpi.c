/* For ucx.py, compiled by MPICH's compiler: every rank sends to the next and receives from the one before, in sizes
 * from a byte to some MiB, then all at once, and into each other's memory. Each compares what it gets; prints "fine".
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST = 5 << 20, ROUNDS = 20, WINDOW = 4096 /* MPICH 4.0.2 loses what is put into one of 4 bytes */ };

static unsigned char byte_of(int rank, int round, int place)
{
    return (unsigned char)((rank * 31 + round * 7 + place) * 2654435761u >> 24);
}

static void fail(const char *what, int rank, int round)
{
    fprintf(stderr, "rank %d: %s is wrong in round %d\n", rank, what, round);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void exchange(int rank, int ranks, int round, int length, unsigned char *out, unsigned char *in)
{
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    for (int i = 0; i < length; i++)
        out[i] = byte_of(rank, round, i);
    MPI_Sendrecv(out, length, MPI_BYTE, next, round, in, length, MPI_BYTE, before, round, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < length; i++)
        if (in[i] != byte_of(before, round, i))
            fail("a message", rank, round);
}

static void sum_up(int rank, int ranks, int round)
{
    long mine = rank + round, sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (sum != (long)ranks * (ranks - 1) / 2 + (long)ranks * round)
        fail("a sum", rank, round);
}

static void put(int rank, int ranks, int *window, MPI_Win handle, int round)
{
    int value = rank + round, next = (rank + 1) % ranks;
    MPI_Win_fence(0, handle);
    MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, handle);
    MPI_Win_fence(0, handle);
    if (*window != (rank + ranks - 1) % ranks + round)
        fail("what was put", rank, round);
}

int main(int argc, char **argv)
{
    int rank, ranks, *window;
    unsigned char *out = malloc(LARGEST), *in = malloc(LARGEST);
    MPI_Win handle;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Win_allocate(WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &handle);
    for (int round = 0, length = 1; round < ROUNDS; round++, length = length < LARGEST / 3 ? 3 * length : LARGEST) {
        exchange(rank, ranks, round, length, out, in);
        sum_up(rank, ranks, round);
        put(rank, ranks, window, handle, round);
    }
    MPI_Win_free(&handle);
    MPI_Finalize();
    puts("fine");
    free(out);
    free(in);
    return 0;
}
