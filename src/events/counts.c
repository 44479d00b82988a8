#include "events/events.h"

/* Places are given in the order of diag.def. A reason that is not counted takes no place: the next line has the place
 * instead. */
enum {
    PLACE_OTHER,
#define REASON(number, name, sentence) PLACE_##name, LAST_##name = PLACE_##name - !EVENTS_COUNTS(number),
#include "diag/diag.def"
#undef REASON
};

static const uint16_t place_of_reason[] = {
#define REASON(number, name, sentence) [number] = EVENTS_COUNTS(number) ? PLACE_##name : PLACE_OTHER,
#include "diag/diag.def"
#undef REASON
};

unsigned counts_place(unsigned reason)
{
    return reason < COUNTED_REASONS ? place_of_reason[reason] : PLACE_OTHER;
}

unsigned counts_reason(unsigned place)
{
    for (unsigned reason = 0; reason < COUNTED_REASONS; reason++)
        if (place_of_reason[reason] == place)
            return reason;
    return 0;
}

void counts_sum(struct counts *to, const struct counts *from)
{
    for (unsigned i = 0; i < EVENTS_COUNTED; i++)
        to->numbers[i] += from->numbers[i];
    for (unsigned i = 0; i < EVENT_SUMS; i++)
        to->sums[i] += from->sums[i];
    for (unsigned i = 0; i < COUNTS_REASONS; i++)
        to->reasons[i] += from->reasons[i];
}
