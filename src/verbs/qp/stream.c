#include "verbs/qp/stream.h"

#include "wire/psn.h"

enum stream_verdict { STREAM_GOES_ON, STREAM_PAID, STREAM_FAILED };

/* Nothing is on its way any more: compares the times. The time of a thread other than the one that began is a wrong
 * measure, and nearly always a large one. */
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
    stream->count = stream->first = 0;
}

static void stream_fail(struct stream *stream)
{
    int32_t again = stream->again ? stream->again : STREAM_AGAIN;
    stream->trial = false;
    stream->paid = 0;
    stream->count = -again;
    stream->again = again < STREAM_AGAIN_MOST ? 2 * again : STREAM_AGAIN_MOST;
}

static bool stream_goes_on_in_ring(struct stream *stream, uint32_t psn, nanos now, nanos (*busy)(void))
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

/* A program that waits for an answer pauses for longer than an access takes: the other side makes one, too. */
static bool stream_goes_on(const struct stream *stream, nanos now)
{
    return now - stream->ended < stream->took / 4 * 3;
}

static bool stream_is_long(struct stream *stream, nanos now, nanos (*busy)(void))
{
    if (stream->count < 0)
        return false;
    if (!stream_goes_on(stream, now))
        stream->count = stream->first = 0;
    if (!stream->first && stream->count >= STREAM_MEASURED) {
        stream->first = stream->count;
        stream->busy = busy();
    }
    return stream->count >= stream->first + STREAM_BEGINS - STREAM_MEASURED && stream->first;
}

bool stream_takes_ring(struct stream *stream, uint32_t length, uint32_t psn, nanos now, nanos (*busy)(void))
{
    if (length > STREAM_LENGTH_MAX) {
        stream->trial = false;
        return false;
    }
    if (stream->trial)
        return stream_goes_on_in_ring(stream, psn, now, busy);
    if (!stream_is_long(stream, now, busy))
        return false;
    nanos then = busy(), spent = then - stream->busy;
    stream->each = spent < NANOS_SECOND ? (uint32_t)(spent / (stream->count - stream->first)) : 0;
    stream_try(stream, psn, now, then);
    return true;
}

void stream_went(struct stream *stream, uint32_t count, nanos begun, nanos ended)
{
    bool waits = stream->count < 0;
    stream->count += (int32_t)count;
    if (waits && stream->count > 0)
        stream->count = 0;
    stream->ended = ended;
    stream->took = ended - begun < NANOS_SECOND ? (uint32_t)(ended - begun) : 0;
}
