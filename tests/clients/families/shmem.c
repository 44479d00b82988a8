/* For family_mpi.py, compiled by oshcc: each PE puts into the memory of the next, gets from the one before, and all add
 * to one counter. Each compares what it finds; prints "fine".
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 100000, ROUNDS = 10 };

static int byte_of(int pe, int round, int place)
{
    return (int)((unsigned)(pe * 31 + round * 7 + place) * 2654435761u >> 8);
}

static void compare(const int *found, int pe, int round, const char *what)
{
    for (int i = 0; i < LENGTH; i++)
        if (found[i] != byte_of(pe, round, i)) {
            fprintf(stderr, "%s is wrong in round %d\n", what, round);
            shmem_global_exit(1);
        }
}

int main(void)
{
    static int local[LENGTH];
    shmem_init();
    int pe = shmem_my_pe(), pes = shmem_n_pes(), before = (pe + pes - 1) % pes;
    int *shared = shmem_malloc(sizeof local);
    long *counter = shmem_malloc(sizeof *counter), sum = 0;
    *counter = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LENGTH; i++)
            local[i] = byte_of(pe, round, i);
        shmem_barrier_all();
        shmem_int_put(shared, local, LENGTH, (pe + 1) % pes);
        shmem_barrier_all();
        compare(shared, before, round, "what was put");
        shmem_int_get(local, shared, LENGTH, before);
        compare(local, (before + pes - 1) % pes, round, "what was got");
        shmem_long_atomic_fetch_add(counter, pe + 1, 0);
        shmem_barrier_all();
        sum += (long)pes * (pes + 1) / 2;
        if (shmem_long_atomic_fetch(counter, 0) != sum) {
            fprintf(stderr, "the counter is wrong in round %d\n", round);
            shmem_global_exit(1);
        }
    }
    puts("fine");
    fflush(stdout);
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
