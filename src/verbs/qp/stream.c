#include "verbs/qp/stream.h"

#include "wire/psn.h"

/* Nothing is on its way any more: was it faster? */
static bool stream_paid(const struct stream *stream, uint32_t psn, nanos now)
{
    uint32_t sent = psn_add(psn, -stream->psn);
    return sent >= STREAM_PAYS_FROM && now - stream->begun < (nanos)sent * stream->each;
}

/* Who waits for an answer pauses for longer than an access takes: the other side makes one, too. */
static bool stream_goes_on(const struct stream *stream, nanos now)
{
    return now - stream->ended < stream->took / 4 * 3;
}

static bool stream_is_long(struct stream *stream, nanos now)
{
    if (stream->count < 0) {
        stream->count++;
        return false;
    }
    if (!stream_goes_on(stream, now))
        stream->count = 0;
    if (!stream->count)
        stream->begun = now;
    return stream->count++ == STREAM_BEGINS;
}

bool stream_takes_ring(struct stream *stream, uint32_t length, uint32_t psn, nanos now)
{
    bool tried = stream->trial;
    stream->trial = false;
    if (length > STREAM_LENGTH_MAX)
        return false;
    if (tried && !stream_paid(stream, psn, now)) {
        stream->count = -STREAM_AGAIN;
        return false;
    }
    if (!tried && !stream_is_long(stream, now))
        return false;
    if (!tried)
        stream->each = (uint32_t)((now - stream->begun) / STREAM_BEGINS);
    stream->trial = true;
    stream->begun = now;
    stream->psn = psn;
    stream->count = 0;
    return true;
}

void stream_went(struct stream *stream, nanos begun, nanos ended)
{
    stream->ended = ended;
    stream->took = ended - begun < NANOS_SECOND ? (uint32_t)(ended - begun) : 0;
}
