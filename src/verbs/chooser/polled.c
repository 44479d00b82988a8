#include "verbs/chooser/polled.h"

#include "base/likely.h"

/* The next work begins a window. */
static void polled_begin(struct polled *polled, uint32_t work)
{
    polled->begun = 0;
    polled->first = work - POLLED_WINDOW;
}

static uint32_t polled_bounded(uint64_t works)
{
    return works < POLLED_FIRST ? POLLED_FIRST : works < POLLED_MOST ? (uint32_t)works : POLLED_MOST;
}

/* The number of works without a packet that last ten times the time lost since the window began. */
static uint32_t polled_repay(const struct polled *polled, uint32_t work, nanos now)
{
    nanos expected = (nanos)(work - polled->first) * polled->direct, spent = nanos_since(polled->begun, now);
    nanos lost = nanos_since(expected, spent), most = polled_late_most;
    return polled_bounded(10 * (lost < most ? lost : most) / (polled->direct ? polled->direct : 1));
}

/* Ends the use of the ring. If the work before this one went through it, that work was perhaps late. */
cold static bool polled_slept(struct polled *polled, uint32_t work, uint32_t attention, nanos (*clock)(void))
{
    if (polled->rings)
        polled->needed = polled->count < POLLED_PAYS ? polled_repay(polled, work, clock()) : 0;
    polled->rings = false;
    polled->attention = attention;
    polled->count = 0;
    polled_begin(polled, work);
    return false;
}

static uint32_t polled_clip(const struct polled *polled, uint32_t each)
{
    uint64_t most = (uint64_t)POLLED_CLIPPED * polled->usual;
    return each < most ? each : (uint32_t)most;
}

/* Updates the median and the mean. The mean ignores the first window: the program has just begun. */
static void polled_learn(struct polled *polled, uint32_t each)
{
    uint32_t usual = polled->usual, mean = polled->direct;
    if (!usual || each < usual / 2)
        polled->usual = each;
    else
        polled->usual = each > usual ? usual + usual / 8 + 1 : usual - usual / 8;
    if (usual)
        polled->direct = mean ? mean - mean / 4 + polled_clip(polled, each) / 4 : each;
}

static void polled_compare(struct polled *polled, uint32_t each)
{
    int64_t direct = polled->direct;
    polled->lost += polled_clip(polled, each) - direct;
    if (polled->lost < -POLLED_CREDIT * direct)
        polled->lost = -POLLED_CREDIT * direct;
    if (polled->lost <= POLLED_LOSS * direct)
        return;
    bool again = polled->count < POLLED_PAYS && polled->needed >= POLLED_AFTER_SLOW;
    polled->needed = polled_bounded(again ? 2 * (uint64_t)polled->needed : POLLED_AFTER_SLOW);
    polled->rings = false;
    polled->count = 0;
}

cold static void polled_measure(struct polled *polled, uint32_t work, nanos now)
{
    nanos spent = nanos_since(polled->begun, now) / (work - polled->first);
    uint32_t each = spent < NANOS_SECOND ? (uint32_t)spent + 1 : (uint32_t)NANOS_SECOND;
    if (polled->begun && polled->rings)
        polled_compare(polled, each);
    else if (polled->begun)
        polled_learn(polled, each);
    polled->begun = now;
    polled->first = work;
}

cold static void polled_try(struct polled *polled, uint32_t work, nanos now)
{
    polled->rings = true;
    polled->count = 0;
    polled->lost = 0;
    polled->begun = now;
    polled->first = work;
}

bool polled_takes_ring(struct polled *polled, uint32_t work, uint32_t attention, nanos (*clock)(void))
{
    if (unlikely(attention != polled->attention))
        return polled_slept(polled, work, attention, clock);
    if (attention % 2)
        return false;
    if (work == polled->last)
        return polled->rings;
    polled->last = work;
    if (work - polled->first >= POLLED_WINDOW)
        polled_measure(polled, work, clock());
    polled->count += polled->count < POLLED_MOST;
    if (unlikely(!polled->rings && polled->count >= (polled->needed ? polled->needed : POLLED_FIRST)))
        polled_try(polled, work, clock());
    return polled->rings;
}

void polled_pauses(struct polled *polled)
{
    polled_begin(polled, polled->last);
}
