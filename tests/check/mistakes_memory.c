/* Memory that peers reach, as mistakes.c. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mistakes.h"

enum { PAGE = 4096, PAGES = 4, SIZE = PAGES * PAGE, REMOTE = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

static char *map_pages(int flags, int file)
{
    char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, file, 0);
    MUST(memory != MAP_FAILED);
    memset(memory, 1, SIZE);
    return memory;
}

static struct ibv_mr *register_pages(const struct loopback *loopback, char *memory)
{
    struct ibv_mr *mr = ibv_reg_mr(loopback->pd, memory, SIZE, REMOTE);
    MUST(mr);
    return mr;
}

/* A file beside this program, for rules_test.py knows the file system there. */
static int make_file(char *name, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", name, size - 8);
    MUST(length > 0 && (size_t)length < size - 8);
    strcpy(name + length, ".XXXXXX");
    int file = mkstemp(name);
    MUST(file >= 0 && !ftruncate(file, SIZE));
    return file;
}

/* To receive; for peers, with its last page after private ones. The twin's are a private mapping, a shared one that is
 * only read, one on demand, and one of tmpfs. */
void register_file(enum loopback_variant variant)
{
    char name[4096];
    struct loopback loopback;
    struct ibv_mr *mr = NULL;
    loopback_open(&loopback, &(struct loopback_options){0});
    int file = make_file(name, sizeof name), memory_file = memfd_create("shared", MFD_CLOEXEC);
    char *memory = map_pages(variant == FAULTY ? MAP_SHARED : MAP_PRIVATE, file), *shared = memory;
    MUST(memory_file >= 0 && !ftruncate(memory_file, SIZE));
    if (variant == FAULTY)
        mr = ibv_reg_mr(loopback.pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE); /* file-not-pinned faulty */
    if (variant == NEIGHBOUR)
        shared = mmap(memory + SIZE - PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    if (variant == NEIGHBOUR)
        mr = ibv_reg_mr(loopback.pd, memory, SIZE, REMOTE); /* file-not-pinned neighbour */
    if (variant == TWIN) {
        MUST(!ibv_dereg_mr(register_pages(&loopback, memory)));
        shared = map_pages(MAP_SHARED, file);
        MUST(!ibv_dereg_mr(ibv_reg_mr(loopback.pd, shared, SIZE, IBV_ACCESS_REMOTE_READ)));
        MUST(!ibv_dereg_mr(ibv_reg_mr(loopback.pd, shared, SIZE, REMOTE | IBV_ACCESS_ON_DEMAND)));
        MUST(!munmap(shared, SIZE));
        shared = map_pages(MAP_SHARED, memory_file);
        mr = register_pages(&loopback, shared);
    }
    MUST(shared != MAP_FAILED && mr && !ibv_dereg_mr(mr));
    MUST(!unlink(name) && !close(file) && !close(memory_file));
    loopback_close(&loopback);
}

/* The region is unmapped and mapped again; its last page gets another. The twin's deregisters first, and unmaps what is
 * beside the region. */
void give_up_region(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    char *memory = map_pages(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    struct ibv_mr *mr =
        variant == TWIN ? ibv_reg_mr(loopback.pd, memory, SIZE - PAGE, REMOTE) : register_pages(&loopback, memory);
    MUST(mr);
    if (variant == TWIN)
        MUST(!munmap(memory + SIZE - PAGE, PAGE) && !ibv_dereg_mr(mr) && !munmap(memory, SIZE - PAGE));
    if (variant == FAULTY)
        MUST(!munmap(memory, SIZE)); /* region-given-up faulty */
    if (variant == NEIGHBOUR)
        MUST(!madvise(memory + SIZE - PAGE, PAGE, MADV_DONTNEED)); /* region-given-up neighbour */
    if (variant != TWIN)
        MUST(!ibv_dereg_mr(mr));
    loopback_close(&loopback);
}

/* -- of no rule by themselves: rules_test.py */

static char *shared_memory(int *file)
{
    *file = memfd_create("shared", MFD_CLOEXEC);
    MUST(*file >= 0 && !ftruncate(*file, SIZE));
    return map_pages(MAP_SHARED, *file);
}

static char *attached_memory(void)
{
    int id = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0600);
    char *memory = id < 0 ? NULL : shmat(id, NULL, 0);
    MUST(memory && memory != (char *)-1 && !shmctl(id, IPC_RMID, NULL));
    return memory;
}

/* Each way to give memory up prints one finding, which names the line. */
void give_up_in_each_way(enum loopback_variant variant)
{
    enum { FIXED = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED };
    struct loopback loopback;
    int file;
    loopback_open(&loopback, &(struct loopback_options){0});
    char *memory = map_pages(MAP_PRIVATE | MAP_ANONYMOUS, -1), *moved;
    struct ibv_mr *mr = register_pages(&loopback, memory);
    MUST(mmap(memory, PAGE, PROT_READ | PROT_WRITE, FIXED, -1, 0) == memory); /* given-up mmap */
    MUST(!ibv_dereg_mr(mr));

    mr = register_pages(&loopback, memory);
    MUST(mremap(memory, SIZE, SIZE / 2, 0) == memory); /* given-up mremap */
    MUST(!ibv_dereg_mr(mr));
    MUST(!munmap(memory, SIZE / 2));

    memory = shared_memory(&file);
    mr = register_pages(&loopback, memory);
    MUST(!ftruncate(file, SIZE - 1) && !ftruncate(file, SIZE));    /* the last page stays */
    MUST(!madvise(memory, SIZE, MADV_DONTNEED) && memory[0] == 1); /* so do all */
    MUST(mmap(memory + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, PAGE) == memory + PAGE);
    MUST(!ftruncate(file, SIZE - PAGE)); /* given-up ftruncate */
    MUST(!ibv_dereg_mr(mr) && !ftruncate(file, SIZE));

    mr = register_pages(&loopback, memory);
    MUST(!fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE)); /* given-up fallocate */
    MUST(!ibv_dereg_mr(mr));

    mr = register_pages(&loopback, memory);
    MUST(!madvise(memory, PAGE, MADV_REMOVE)); /* given-up madvise */
    MUST(!ibv_dereg_mr(mr) && !munmap(memory, SIZE) && !close(file));

    memory = attached_memory();
    mr = register_pages(&loopback, memory);
    MUST(!shmdt(memory)); /* given-up shmdt */
    MUST(!ibv_dereg_mr(mr));

    memory = calloc(1, SIZE);
    mr = register_pages(&loopback, memory);
    free(memory); /* given-up free */
    MUST(!ibv_dereg_mr(mr));

    memory = calloc(1, SIZE);
    moved = malloc(PAGE);
    mr = register_pages(&loopback, memory);
    MUST(memory = realloc(memory, 64 * SIZE)); /* given-up realloc */
    MUST(!ibv_dereg_mr(mr));
    free(memory);
    free(moved);
    loopback_close(&loopback);
    (void)variant;
}

/* The child of a fork gives its copies up; memory that no peer can reach is unmapped or freed before it is
 * deregistered, and a region has more than a block of the allocator. */
void give_up_rightly(enum loopback_variant variant)
{
    struct loopback loopback;
    int status;
    loopback_open(&loopback, &(struct loopback_options){0});
    char *memory = map_pages(MAP_PRIVATE | MAP_ANONYMOUS, -1), *block = malloc(SIZE);
    struct ibv_mr *mr = register_pages(&loopback, memory), *other = ibv_reg_mr(loopback.pd, block - 16, SIZE, REMOTE);
    struct ibv_mr *local = ibv_reg_mr(loopback.pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE);
    MUST(block && other && local);
    pid_t child = fork();
    if (!child) {
        MUST(!madvise(memory, SIZE, MADV_DONTNEED) && !munmap(memory, SIZE));
        free(block);
        _exit(0);
    }
    MUST(child > 0 && waitpid(child, &status, 0) == child && !status);
    free(block);
    MUST(!ibv_dereg_mr(mr) && !ibv_dereg_mr(other));
    MUST(!munmap(memory, SIZE) && !ibv_dereg_mr(local));
    memory = map_pages(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    mr = register_pages(&loopback, memory);
    for (int at = 0; at < 2; at++)
        MUST(!ibv_modify_qp(loopback.qp[at], &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
    MUST(!munmap(memory, SIZE) && !ibv_dereg_mr(mr));
    loopback_close(&loopback);
    (void)variant;
}
