#include "mlx5/mkey_layout.h"

void mkey_layout_begin(struct send_wqe *work, uint32_t key)
{
    work->rkey = key;
    work->immediate = 0;
    work->compare_or_add = 0;
}

static struct indirect_piece *pieces_of(const struct send_wqe *work)
{
    return (struct indirect_piece *)(uintptr_t)work->inline_data;
}

/* Begins a layout of so many pieces. NULL: they have no room. */
static struct indirect_piece *begin_pieces(struct send_wqe *work, uint32_t room, uint32_t rounds, uint16_t count)
{
    if (!count || !rounds || count > room / sizeof(struct indirect_piece))
        return NULL;
    work->immediate = count;
    work->compare_or_add = rounds;
    return pieces_of(work);
}

bool mkey_layout_put_list(struct send_wqe *work, uint32_t room, uint16_t count, const struct ibv_sge *list)
{
    struct indirect_piece *pieces = begin_pieces(work, room, 1, count);
    for (uint16_t i = 0; pieces && i < count; i++)
        pieces[i] = (struct indirect_piece){.address = list[i].addr, .bytes = list[i].length, .key = list[i].lkey};
    return pieces;
}

bool mkey_layout_put_interleaved(struct send_wqe *work, uint32_t room, uint32_t rounds, uint16_t count,
                                 const struct mlx5dv_mr_interleaved *list)
{
    struct indirect_piece *pieces = begin_pieces(work, room, rounds, count);
    for (uint16_t i = 0; pieces && i < count; i++)
        pieces[i] = (struct indirect_piece){
            .address = list[i].addr, .bytes = list[i].bytes_count, .skip = list[i].bytes_skip, .key = list[i].lkey};
    return pieces;
}

struct indirect_layout mkey_layout_of(const struct send_wqe *work)
{
    return (struct indirect_layout){work->immediate, (uint32_t)work->compare_or_add, pieces_of(work)};
}
