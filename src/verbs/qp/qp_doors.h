/* The doors of a queue pair's engine (transport/engine/engine.h) by which everything enters except on the short ways:
 * each is the engine_ function of the same name, through the recording if the process is recorded (record/recorded.h).
 * A recorded queue pair never takes the short ways, whose doors are called directly: it is watched, and its
 * process has taps. All under qp->lock. */
#pragma once

#include "base/likely.h"
#include "record/recorded.h"
#include "verbs/qp/qp_datapath.h"

#define SELF struct qp *qp
#define DOOR(type, name, record, service, parameters, ...)                                                             \
    __attribute__((always_inline)) static inline type qp_door_##name parameters                                        \
    {                                                                                                                  \
        struct recorded *recorded = qp_datapath(qp)->recorded;                                                         \
        return unlikely(recorded != NULL) ? recorded_##name(recorded, ##__VA_ARGS__)                                   \
                                          : engine_##name(qp_engine(qp), ##__VA_ARGS__);                               \
    }
#include "transport/engine/doors.def"

/* The door engine_posted, which does nothing, and is not recorded, while the engine works. */
void qp_door_posted_slow(struct qp *);

static inline void qp_door_posted(struct qp *qp)
{
    if (unlikely(engine_has_failed(qp_engine(qp)) || engine_has_send_error(qp_engine(qp))))
        qp_door_posted_slow(qp);
}

/* The door engine_acknowledge_late of a reliable engine, which does nothing, unrecorded, if nothing is owed. */
void qp_door_acknowledge_late_slow(struct qp *);

static inline void qp_door_acknowledge_late(struct qp *qp)
{
    if (unlikely(engine_owes_late(qp_engine(qp))))
        qp_door_acknowledge_late_slow(qp);
}

/* The door engine_transmit_reliable. */
__attribute__((always_inline)) static inline bool qp_door_transmit_reliable(struct qp *qp, struct packet *out,
                                                                            struct iovec *pieces, nanos now)
{
    struct recorded *recorded = qp_datapath(qp)->recorded;
    return unlikely(recorded != NULL) ? recorded_transmit(recorded, out, pieces, now)
                                      : engine_transmit_reliable(qp_engine(qp), out, pieces, now);
}

/* The door engine_keep_responses, for `count` entries. */
static inline void qp_door_keep_responses(struct qp *qp, struct responder_resource *saved, uint32_t count)
{
    struct recorded *recorded = qp_datapath(qp)->recorded;
    if (recorded)
        recorded_keep_responses(recorded, saved, count);
    else
        engine_keep_responses(qp_engine(qp), saved);
}

static inline void qp_door_create(struct qp *qp, enum service service, const struct send_queue *queue)
{
    struct recorded *recorded = qp_datapath(qp)->recorded;
    if (recorded)
        recorded_create(recorded, service, queue);
    else
        engine_initialize(qp_engine(qp), service, qp_owner(qp), queue, NULL);
}
