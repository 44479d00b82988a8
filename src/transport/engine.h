/* An engine of any service behind one set of calls: RC and XRC, UC, UD, raw packets. What only one of them has is
 * called by its own name, on the part of the union that `operations` says is there. Pure, as rc.h says. */
#ifndef TRANSPORT_ENGINE_H
#define TRANSPORT_ENGINE_H

#include "transport/rc/rc.h"
#include "transport/unreliable/raw.h"
#include "transport/unreliable/uc.h"
#include "transport/unreliable/ud.h"

struct engine;

struct engine_operations {
    void (*start_receiving)(struct engine *, uint32_t expected_psn);
    void (*start_transmitting)(struct engine *, uint32_t first_psn);
    void (*drain)(struct engine *, bool draining);
    void (*posted)(struct engine *);
    void (*receive)(struct engine *, const struct packet *, nanos now);                     /* raw packets: NULL */
    bool (*transmit)(struct engine *, struct packet *out, struct iovec *pieces, nanos now); /* likewise */
    bool (*has_output)(const struct engine *);
    void (*flush)(struct engine *);
    void (*reset)(struct engine *);
    bool reliable;
};

struct engine {
    const struct engine_operations *operations;
    union {
        struct rc rc;
        struct unreliable unreliable; /* the beginning of the three below */
        struct uc uc;
        struct ud ud;
        struct raw raw;
    };
};

/* Makes an idle engine of this service. `queue` describes memory of the owner, which outlives the engine; `saved` is
 * RC's and XRC's (rc_initialize), and may be NULL until it receives. */
void engine_initialize(struct engine *, enum service, struct engine_owner *, const struct send_queue *queue,
                       struct responder_resource *saved);
void engine_initialize_raw(struct engine *, struct engine_owner *, const struct send_queue *queue);

static inline bool engine_is_reliable(const struct engine *engine)
{
    return engine->operations->reliable;
}

static inline struct send_queue *engine_queue(struct engine *engine)
{
    return engine_is_reliable(engine) ? &engine->rc.requester.queue : &engine->unreliable.queue;
}

static inline bool engine_has_failed(const struct engine *engine)
{
    return engine_is_reliable(engine) ? engine->rc.failed : engine->unreliable.failed;
}

/* SQE; the owner clears it for SQE to RTS. NULL: this service has none. */
static inline bool *engine_send_error(struct engine *engine)
{
    return engine_is_reliable(engine) ? NULL : &engine->unreliable.send_error;
}

/* RTR and RTS. */
static inline void engine_start_receiving(struct engine *engine, uint32_t expected_psn)
{
    engine->operations->start_receiving(engine, expected_psn);
}

static inline void engine_start_transmitting(struct engine *engine, uint32_t first_psn)
{
    engine->operations->start_transmitting(engine, first_psn);
}

/* SQD and back; as rc_drain. */
static inline void engine_drain(struct engine *engine, bool draining)
{
    engine->operations->drain(engine, draining);
}

/* After a batch was posted; as rc_posted, and nothing to do for an engine that works. */
static inline void engine_posted(struct engine *engine)
{
    bool works =
        engine_is_reliable(engine) ? !engine->rc.failed : !engine->unreliable.failed && !engine->unreliable.send_error;
    if (!__builtin_expect(works, 1))
        engine->operations->posted(engine);
}

/* Takes one packet from the network. The packet and its payload are not kept. Not for raw packets. */
static inline void engine_receive(struct engine *engine, const struct packet *packet, nanos now)
{
    engine->operations->receive(engine, packet, now);
}

/* The next packet to send, or false; as rc_transmit. Not for raw packets. */
static inline bool engine_transmit(struct engine *engine, struct packet *out, struct iovec *pieces, nanos now)
{
    return engine->operations->transmit(engine, out, pieces, now);
}

/* May say yes too often, never no wrongly. */
static inline bool engine_has_output(const struct engine *engine)
{
    return engine->operations->has_output(engine);
}

/* When engine_expire is to be called; NANOS_NEVER: not at all. */
static inline nanos engine_deadline(const struct engine *engine)
{
    return engine_is_reliable(engine) ? rc_deadline(&engine->rc) : NANOS_NEVER;
}

/* The same for an owner that will look then; as rc_watch. */
static inline nanos engine_watch(struct engine *engine)
{
    return engine_is_reliable(engine) ? rc_watch(&engine->rc) : NANOS_NEVER;
}

static inline void engine_expire(struct engine *engine, nanos now)
{
    if (engine_is_reliable(engine))
        rc_expire(&engine->rc, now);
}

/* As rc_postpone. */
static inline void engine_postpone(struct engine *engine, nanos now)
{
    if (engine_is_reliable(engine))
        rc_postpone(&engine->rc, now);
}

/* To the error state by the owner's wish: everything outstanding is flushed. Does not call owner->failed. */
static inline void engine_flush(struct engine *engine)
{
    engine->operations->flush(engine);
}

/* To the state after engine_initialize, but with its settings: nothing is completed, everything is forgotten. */
static inline void engine_reset(struct engine *engine)
{
    engine->operations->reset(engine);
}

/* The receive that a message has taken and not ended; NULL: none. */
const struct recv_wqe *engine_open_receive(const struct engine *);

#endif
