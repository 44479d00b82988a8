/* A program at a fixed address that takes the address of free(3), as python3 of Debian 12 does: all libraries have the
 * program's own stub for it then. It frees the buffer of a receive that waits, and a buffer that no receive uses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "frees_library.h"
#include "loopback.h"

enum { SIZE = 64 };

static void (*volatile by_address)(void *);

int main(void)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    char *buffer = malloc(SIZE), *unused = malloc(SIZE);
    struct ibv_mr *mr = ibv_reg_mr(loopback.pd, buffer, SIZE, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge piece = {(uintptr_t)buffer, SIZE, mr ? mr->lkey : 0};
    MUST(mr && !library_post(loopback.qp[1], &piece));
    by_address = free; /* an instruction has the address, so the program has the stub */
    by_address(unused);
    library_free(buffer);
    MUST(!ibv_destroy_qp(loopback.qp[1]) && !ibv_dereg_mr(mr));
    loopback.qp[1] = NULL;
    loopback_close(&loopback);
    return 0;
}
