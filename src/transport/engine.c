#include "transport/engine.h"

/* ---- RC and XRC */

static void rc_engine_start_receiving(struct engine *engine, uint32_t expected_psn)
{
    rc_start_receiving(&engine->rc, expected_psn);
}

static void rc_engine_start_transmitting(struct engine *engine, uint32_t first_psn)
{
    rc_start_transmitting(&engine->rc, first_psn);
}

static void rc_engine_drain(struct engine *engine, bool draining)
{
    rc_drain(&engine->rc, draining);
}

static void rc_engine_posted(struct engine *engine)
{
    rc_posted(&engine->rc);
}

static void rc_engine_receive(struct engine *engine, const struct packet *packet, nanos now)
{
    rc_receive(&engine->rc, packet, now);
}

static bool rc_engine_transmit(struct engine *engine, struct packet *out, struct iovec *pieces, nanos now)
{
    return rc_transmit(&engine->rc, out, pieces, now);
}

static bool rc_engine_has_output(const struct engine *engine)
{
    return rc_has_output(&engine->rc);
}

static void rc_engine_flush(struct engine *engine)
{
    rc_flush(&engine->rc);
}

static void rc_engine_reset(struct engine *engine)
{
    rc_reset(&engine->rc);
}

static const struct engine_operations rc_operations = {
    .start_receiving = rc_engine_start_receiving,
    .start_transmitting = rc_engine_start_transmitting,
    .drain = rc_engine_drain,
    .posted = rc_engine_posted,
    .receive = rc_engine_receive,
    .transmit = rc_engine_transmit,
    .has_output = rc_engine_has_output,
    .flush = rc_engine_flush,
    .reset = rc_engine_reset,
    .reliable = true,
};

/* ---- what the others have in common */

static void common_drain(struct engine *engine, bool draining)
{
    unreliable_drain(&engine->unreliable, draining);
}

static void common_posted(struct engine *engine)
{
    unreliable_posted(&engine->unreliable);
}

static bool common_has_output(const struct engine *engine)
{
    return unreliable_has_output(&engine->unreliable);
}

static void common_flush(struct engine *engine)
{
    unreliable_flush(&engine->unreliable);
}

/* ---- UC */

static void uc_engine_start_receiving(struct engine *engine, uint32_t expected_psn)
{
    uc_start_receiving(&engine->uc, expected_psn);
}

static void uc_engine_start_transmitting(struct engine *engine, uint32_t first_psn)
{
    uc_start_transmitting(&engine->uc, first_psn);
}

static void uc_engine_receive(struct engine *engine, const struct packet *packet, nanos now)
{
    uc_receive(&engine->uc, packet);
}

static bool uc_engine_transmit(struct engine *engine, struct packet *out, struct iovec *pieces, nanos now)
{
    return uc_transmit(&engine->uc, out, pieces);
}

static void uc_engine_flush(struct engine *engine)
{
    uc_flush(&engine->uc);
}

static void uc_engine_reset(struct engine *engine)
{
    uc_reset(&engine->uc);
}

static const struct engine_operations uc_operations = {
    .start_receiving = uc_engine_start_receiving,
    .start_transmitting = uc_engine_start_transmitting,
    .drain = common_drain,
    .posted = common_posted,
    .receive = uc_engine_receive,
    .transmit = uc_engine_transmit,
    .has_output = common_has_output,
    .flush = uc_engine_flush,
    .reset = uc_engine_reset,
};

/* ---- UD */

static void ud_engine_start_receiving(struct engine *engine, uint32_t expected_psn)
{
    ud_start_receiving(&engine->ud);
}

static void ud_engine_start_transmitting(struct engine *engine, uint32_t first_psn)
{
    ud_start_transmitting(&engine->ud, first_psn);
}

static void ud_engine_receive(struct engine *engine, const struct packet *packet, nanos now)
{
    ud_receive(&engine->ud, packet);
}

static bool ud_engine_transmit(struct engine *engine, struct packet *out, struct iovec *pieces, nanos now)
{
    return ud_transmit(&engine->ud, out, pieces);
}

static void ud_engine_reset(struct engine *engine)
{
    ud_reset(&engine->ud);
}

static const struct engine_operations ud_operations = {
    .start_receiving = ud_engine_start_receiving,
    .start_transmitting = ud_engine_start_transmitting,
    .drain = common_drain,
    .posted = common_posted,
    .receive = ud_engine_receive,
    .transmit = ud_engine_transmit,
    .has_output = common_has_output,
    .flush = common_flush,
    .reset = ud_engine_reset,
};

/* ---- raw packets */

static void raw_engine_start_receiving(struct engine *engine, uint32_t expected_psn)
{
    raw_start_receiving(&engine->raw);
}

static void raw_engine_start_transmitting(struct engine *engine, uint32_t first_psn)
{
    raw_start_transmitting(&engine->raw);
}

static void raw_engine_posted(struct engine *engine)
{
    raw_posted(&engine->raw);
}

static void raw_engine_flush(struct engine *engine)
{
    raw_flush(&engine->raw);
}

static void raw_engine_reset(struct engine *engine)
{
    raw_reset(&engine->raw);
}

static const struct engine_operations raw_operations = {
    .start_receiving = raw_engine_start_receiving,
    .start_transmitting = raw_engine_start_transmitting,
    .drain = common_drain,
    .posted = raw_engine_posted,
    .has_output = common_has_output,
    .flush = raw_engine_flush,
    .reset = raw_engine_reset,
};

/* ---- */

_Static_assert(!offsetof(struct uc, common) && !offsetof(struct ud, common) && !offsetof(struct raw, common),
               "what they have in common comes first");

void engine_initialize(struct engine *engine, enum service service, struct engine_owner *owner,
                       const struct send_queue *queue, struct responder_resource *saved)
{
    if (service == SERVICE_UC) {
        engine->operations = &uc_operations;
        uc_initialize(&engine->uc, owner, queue);
    } else if (service == SERVICE_UD) {
        engine->operations = &ud_operations;
        ud_initialize(&engine->ud, owner, queue);
    } else {
        engine->operations = &rc_operations;
        rc_initialize(&engine->rc, owner, queue, saved);
    }
}

void engine_initialize_raw(struct engine *engine, struct engine_owner *owner, const struct send_queue *queue)
{
    engine->operations = &raw_operations;
    raw_initialize(&engine->raw, owner, queue);
}

/* A UD message of one packet, and a frame, end with it. */
const struct recv_wqe *engine_open_receive(const struct engine *engine)
{
    if (engine_is_reliable(engine))
        return engine->rc.responder.receive;
    return engine->operations == &uc_operations ? engine->uc.receive : NULL;
}
