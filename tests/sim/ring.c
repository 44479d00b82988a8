/* For clients.py: each rank sends to the next one, and compares what it gets. */
#include <mpi.h>
#include <string.h>

enum { LARGEST = 1 << 18, ROUNDS = 4 };

static char out[LARGEST], in[LARGEST];

static void exchange(int rank, int ranks, int length)
{
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    memset(out, rank + length, (size_t)length);
    MPI_Sendrecv(out, length, MPI_BYTE, next, 0, in, length, MPI_BYTE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < length; i++)
        if (in[i] != (char)(before + length))
            MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int round = 0; round < ROUNDS; round++)
        for (int length = 1; length <= LARGEST; length *= 8)
            exchange(rank, ranks, length);
    return MPI_Finalize();
}
