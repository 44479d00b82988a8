#include "base/timers.h"

#include <stddef.h>

/* Two heaps, each without siblings, become one. */
static struct timer *meld(struct timer *a, struct timer *b)
{
    if (!a || !b)
        return a ? a : b;
    if (b->at < a->at) {
        struct timer *swap = a;
        a = b;
        b = swap;
    }
    b->sibling = a->child;
    if (a->child)
        a->child->before = b;
    b->before = a;
    a->child = b;
    return a;
}

/* Takes the first off a list of siblings. */
static struct timer *detach(struct timer **list)
{
    struct timer *first = *list;
    if (first) {
        *list = first->sibling;
        first->sibling = first->before = NULL;
    }
    return first;
}

/* A list of siblings becomes one heap: pairs from the left, then all from the right (Fredman et al., 1986). */
static struct timer *meld_pairs(struct timer *list)
{
    struct timer *pairs = NULL, *heap = NULL;
    while (list) {
        struct timer *left = detach(&list), *pair = meld(left, detach(&list));
        pair->sibling = pairs;
        pairs = pair;
    }
    while (pairs)
        heap = meld(heap, detach(&pairs));
    return heap;
}

void timer_stop(struct timers *timers, struct timer *timer)
{
    if (!timer->set)
        return;
    struct timer *below = meld_pairs(timer->child);
    if (timers->first == timer)
        timers->first = below;
    else {
        *(timer->before->child == timer ? &timer->before->child : &timer->before->sibling) = timer->sibling;
        if (timer->sibling)
            timer->sibling->before = timer->before;
        timers->first = meld(timers->first, below);
    }
    timer->child = timer->sibling = timer->before = NULL;
    timer->set = false;
}

void timer_set(struct timers *timers, struct timer *timer, nanos at)
{
    timer_stop(timers, timer);
    timer->at = at;
    timer->set = true;
    timers->first = meld(timers->first, timer);
}

nanos timers_next(const struct timers *timers)
{
    return timers->first ? timers->first->at : NANOS_NEVER;
}

void timers_expire(struct timers *timers, nanos now)
{
    struct timer *timer;
    while ((timer = timers->first) && timer->at <= now) {
        timer_stop(timers, timer);
        timer->expired(timer, now);
    }
}
