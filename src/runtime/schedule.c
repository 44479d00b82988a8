#include "runtime/schedule.h"

#include "base/container.h"

void schedule_initialize(struct schedule *schedule, void (*wake_up)(struct schedule *))
{
    lock_set_rank(&schedule->lock, LOCK_INNERMOST);
    schedule->timers = (struct timers){NULL};
    schedule->looking = 0;
    atomic_store(&schedule->look_at, NANOS_NEVER);
    schedule->wake_up = wake_up;
}

void schedule_initialize_timer(struct schedule_timer *timer, void (*expired)(struct timer *, nanos now))
{
    timer->timer = (struct timer){.expired = expired};
    atomic_store(&timer->at, NANOS_NEVER);
}

static void arm(struct schedule *schedule, struct schedule_timer *timer, nanos at)
{
    lock_take(&schedule->lock);
    if (schedule->looking && at <= schedule->looking)
        at = schedule->looking + 1;
    if (at < atomic_load_explicit(&timer->at, memory_order_relaxed)) {
        timer_set(&schedule->timers, &timer->timer, at);
        atomic_store(&timer->at, at);
    }
    lock_release(&schedule->lock);
}

/* Sets the timer before it reads look_at, while the helper writes look_at and then looks at the timers once more:
 * one of the two sees the other. */
void schedule_by(struct schedule *schedule, struct schedule_timer *timer, nanos at)
{
    if (at >= atomic_load(&timer->at))
        return;
    arm(schedule, timer, at);
    if (schedule_is_due(schedule, at))
        return;
    schedule_look_at(schedule, at);
    schedule->wake_up(schedule);
}

static void disarm(struct schedule *schedule, struct schedule_timer *timer)
{
    timer_stop(&schedule->timers, &timer->timer);
    atomic_store(&timer->at, NANOS_NEVER);
}

void schedule_cancel(struct schedule *schedule, struct schedule_timer *timer)
{
    lock_take(&schedule->lock);
    disarm(schedule, timer);
    lock_release(&schedule->lock);
}

/* Takes the first timer that is due, which is not set any more then; or returns NULL. */
static struct timer *take_due(struct schedule *schedule, nanos now)
{
    lock_take(&schedule->lock);
    bool due = timers_next(&schedule->timers) <= now;
    struct timer *timer = due ? schedule->timers.first : NULL;
    if (timer)
        disarm(schedule, container_of(timer, struct schedule_timer, timer));
    schedule->looking = timer ? now : 0;
    lock_release(&schedule->lock);
    return timer;
}

nanos schedule_expire(struct schedule *schedule, nanos now)
{
    struct timer *timer;
    while ((timer = take_due(schedule, now)))
        timer->expired(timer, now);
    lock_take(&schedule->lock);
    nanos next = timers_next(&schedule->timers);
    lock_release(&schedule->lock);
    return next;
}
