/* A program with a private allocator that has no malloc_usable_size(3). The C library's must not be asked about its
 * memory, which has no sizes before it. The library frees the buffer of a receive that waits, and one that is not in
 * use. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "frees_library.h"
#include "loopback.h"

enum { ARENA = 1 << 27, ALIGNMENT = 16, SIZE = 64 };

static char arena[ARENA] __attribute__((aligned(4096)));
static size_t used;

static void *take(size_t alignment, size_t size)
{
    size_t at = __atomic_fetch_add(&used, size + alignment, __ATOMIC_RELAXED);
    at = (at + alignment - 1) & ~(alignment - 1);
    return at + size <= ARENA ? arena + at : NULL;
}

void *malloc(size_t size)
{
    return take(ALIGNMENT, size);
}

void free(void *memory)
{
}

void *calloc(size_t count, size_t size)
{
    return take(ALIGNMENT, count * size); /* nothing is used twice */
}

/* When the old block was smaller, the bytes after it are copied as well. */
void *realloc(void *memory, size_t size)
{
    char *larger = take(ALIGNMENT, size);
    size_t most = memory ? (size_t)(arena + ARENA - (char *)memory) : 0;
    if (larger && memory)
        memmove(larger, memory, size < most ? size : most);
    return larger;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return take(alignment, size);
}

void *memalign(size_t alignment, size_t size)
{
    return take(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    *memory = take(alignment, size);
    return *memory ? 0 : ENOMEM;
}

int main(void)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    char *block = malloc(3 * SIZE), *unused = block + SIZE, *buffer = unused + SIZE; /* free takes any address */
    memset(block, 0xf0, 3 * SIZE); /* where the C library would have the sizes */
    struct ibv_mr *mr = ibv_reg_mr(loopback.pd, block, 3 * SIZE, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge piece = {(uintptr_t)buffer, SIZE, mr ? mr->lkey : 0};
    MUST(mr && !library_post(loopback.qp[1], &piece));
    library_free(unused);
    library_free(buffer);
    MUST(!ibv_destroy_qp(loopback.qp[1]) && !ibv_dereg_mr(mr));
    loopback.qp[1] = NULL;
    loopback_close(&loopback);
    return 0;
}
