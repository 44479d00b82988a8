#include "events/events.h"

/* diag.def begins with the reasons that are counted, in rising order: their positions are their places. */
enum {
    PLACE_OTHER,
#define REASON(number, name, sentence) PLACE_##name,
#include "diag/diag.def"
#undef REASON
};

#define REASON(number, name, sentence)                                                                                 \
    _Static_assert(((number) < COUNTED_REASONS) == ((int)PLACE_##name < (int)COUNTS_REASONS), "out of order: " #name);
#include "diag/diag.def"
#undef REASON

static const uint16_t place_of_reason[] = {
#define REASON(number, name, sentence) [number] = PLACE_##name,
#include "diag/diag.def"
#undef REASON
};

static const uint16_t reason_of_place[] = {
    [PLACE_OTHER] = 0,
#define REASON(number, name, sentence) [PLACE_##name] = (number),
#include "diag/diag.def"
#undef REASON
};

unsigned counts_place(unsigned reason)
{
    return reason < COUNTED_REASONS ? place_of_reason[reason] : PLACE_OTHER;
}

unsigned counts_reason(unsigned place)
{
    return reason_of_place[place];
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
