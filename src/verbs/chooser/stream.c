#include "verbs/chooser/stream.h"

#include "wire/psn.h"

enum stream_verdict { STREAM_GOES_ON, STREAM_PAID, STREAM_FAILED };

/* Compares the times, when nothing is on its way any more. If another thread began the trial, the measure is wrong, and
 * nearly always large. */
static enum stream_verdict stream_judge(struct stream *stream, uint32_t psn, nanos now, nanos (*busy)(void))
{
    nanos sent = psn_add(psn, -stream->psn), direct = sent * stream->each;
    if (sent < STREAM_ENOUGH && now < stream->look_at)
        return STREAM_GOES_ON;
    nanos spent = busy() - stream->busy;
    stream->look_at = now + stream_grace;
    if (sent >= STREAM_ENOUGH || spent >= stream_longest)
        return sent >= STREAM_PAYS_FROM && spent < direct ? STREAM_PAID : STREAM_FAILED;
    return spent >= stream_grace && spent > 4 * direct ? STREAM_FAILED : STREAM_GOES_ON;
}

static void stream_try(struct stream *stream, uint32_t psn, nanos now, nanos busy)
{
    stream->trial = true;
    stream->busy = busy;
    stream->look_at = now + stream_grace;
    stream->psn = psn;
    stream->count = stream->first = stream->next = 0;
    stream->begun = 0;
}

static void stream_fail(struct stream *stream)
{
    int32_t again = stream->again ? stream->again : STREAM_AGAIN;
    stream->trial = false;
    stream->paid = 0;
    stream->count = -again;
    stream->again = again < STREAM_AGAIN_MOST ? 2 * again : STREAM_AGAIN_MOST;
}

cold static bool stream_goes_on_in_ring(struct stream *stream, uint32_t psn, nanos now, nanos (*busy)(void))
{
    switch (stream_judge(stream, psn, now, busy)) {
    case STREAM_FAILED:
        stream_fail(stream);
        return false;
    case STREAM_PAID:
        stream->again = 0;
        stream_try(stream, psn, now, busy());
        stream->trial = ++stream->paid % STREAM_TRIALS != 0;
        return stream->trial;
    default:
        return true;
    }
}

/* Returns true if there was no pause. A program that waits for an answer pauses for longer than an access takes, as the
 * other side makes an access, too. */
static bool stream_goes_on(const struct stream *stream, nanos now)
{
    nanos works = (nanos)(stream->count - stream->next + STREAM_WINDOW);
    return stream->begun && nanos_since(stream->begun, now) < works * (stream->took + stream->took / 2);
}

static bool stream_is_long(struct stream *stream, nanos now, nanos (*busy)(void))
{
    if (!stream_goes_on(stream, now))
        stream->count = stream->first = 0;
    stream->begun = now;
    stream->timing = true;
    stream->next = stream->count + STREAM_WINDOW;
    if (!stream->first && stream->count >= STREAM_MEASURED) {
        stream->first = stream->count;
        stream->busy = busy();
    }
    return stream->count >= stream->first + STREAM_BEGINS - STREAM_MEASURED && stream->first;
}

cold static bool stream_look(struct stream *stream, uint32_t psn, nanos now, nanos (*busy)(void))
{
    if (!stream_is_long(stream, now, busy))
        return false;
    nanos then = busy(), spent = then - stream->busy;
    stream->each = spent < NANOS_SECOND ? (uint32_t)(spent / (stream->count - stream->first)) : 0;
    stream_try(stream, psn, now, then);
    return true;
}

bool stream_takes_ring(struct stream *stream, uint32_t length, uint32_t psn, nanos (*clock)(void), nanos (*busy)(void))
{
    if (length > STREAM_LENGTH_MAX) {
        stream->trial = false;
        return false;
    }
    if (unlikely(stream->trial))
        return stream_goes_on_in_ring(stream, psn, clock(), busy);
    return unlikely(stream->count >= stream->next) && stream_look(stream, psn, clock(), busy);
}

cold static void stream_time(struct stream *stream, uint32_t count, nanos now)
{
    nanos took = nanos_since(stream->begun, now) / count;
    stream->timing = false;
    stream->took = took < NANOS_SECOND ? (uint32_t)took : 0;
}

void stream_went(struct stream *stream, uint32_t count, nanos (*clock)(void))
{
    bool waits = stream->count < 0;
    stream->count += (int32_t)count;
    if (unlikely(waits && stream->count > 0))
        stream->count = 0;
    if (unlikely(stream->timing))
        stream_time(stream, count, clock());
}
