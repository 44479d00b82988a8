#include "events/events.h"

void counts_sum(struct counts *to, const struct counts *from)
{
    for (unsigned i = 0; i < EVENTS_COUNTED; i++)
        to->numbers[i] += from->numbers[i];
    for (unsigned i = 0; i < EVENT_SUMS; i++)
        to->sums[i] += from->sums[i];
    for (unsigned i = 0; i < COUNTS_REASONS; i++)
        to->reasons[i] += from->reasons[i];
}
