#include "draw/works.h"

#include <stdlib.h>

void works_post(struct works *works, uint32_t posted, bool local)
{
    *LIST_ADD(works->list, works->count, works->room) =
        (struct work){.posted = posted, .message = LOOKUP_NONE, .local = local};
}

uint32_t works_send(struct works *works, uint32_t message)
{
    while (works->sent < works->count && (works->list[works->sent].local || works->sent < works->ended))
        works->sent++;
    if (works->sent == works->count)
        return LOOKUP_NONE;
    works->list[works->sent].message = message;
    return works->list[works->sent++].posted;
}

uint32_t works_end(struct works *works)
{
    return works->ended < works->count ? works->list[works->ended++].message : LOOKUP_NONE;
}

void works_reset(struct works *works)
{
    works->sent = works->ended = works->count;
}

void works_free(struct works *works)
{
    free(works->list);
}
