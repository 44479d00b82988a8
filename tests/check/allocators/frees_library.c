#include "frees_library.h"

#include <stdlib.h>

int library_post(struct ibv_qp *qp, struct ibv_sge *piece)
{
    struct ibv_recv_wr *bad, receive = {.wr_id = 6, .sg_list = piece, .num_sge = 1};
    return ibv_post_recv(qp, &receive, &bad);
}

void library_free(void *memory)
{
    free(memory);
}
