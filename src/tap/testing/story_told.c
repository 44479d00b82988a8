/* The record of the simulator: each of its words is one or no record of the story. */
#include "tap/testing/story_world.h"

#include <string.h>

#include "wire/op.h"

void story_tell(struct end *end, enum event event, uint64_t a, uint64_t b, uint32_t more)
{
    story_append(&end->told, (struct story_record){end->flow.now, event, more, a, b});
}

static void tell_refusal(struct end *end, uint64_t psn, uint64_t syndrome, enum event nak, enum event rnr)
{
    enum syndrome_class class = syndrome_class((uint8_t)syndrome);
    if (class == SYNDROME_CLASS_NAK || class == SYNDROME_CLASS_RNR)
        story_tell(end, class == SYNDROME_CLASS_NAK ? nak : rnr, psn, syndrome, 0);
}

static void on_sends(struct end *end, uint64_t what, uint64_t length)
{
    uint32_t psn = what & PSN_MASK;
    if (!(end->flow.service == SERVICE_RC || end->flow.service == SERVICE_XRC) ||
        op_table[what >> 24].flags & OP_RESPONSE)
        return;
    if (end->repeats && psn != end->repeated)
        story_complain(end, "psn %u is sent after a time-out of psn %u", psn, end->repeated);
    end->repeats = false;
    if (end->sent_any && psn_distance(psn, end->next) < 0)
        story_tell(end, EVENT_RETRANSMITTED, psn, 0, 0);
    else
        end->next = psn_add(psn, 1);
    end->sent_any = true;
}

static void on_reserves(struct end *end, uint64_t psn, uint64_t more)
{
    uint32_t behind = psn_add((uint32_t)psn, (int32_t)more + 1);
    if (psn_distance(behind, end->next) > 0)
        end->next = behind;
}

static void on_renumbers(struct end *end, uint64_t psn, uint64_t unused)
{
    end->next = (uint32_t)psn;
}

static void on_answers(struct end *end, uint64_t psn, uint64_t syndrome)
{
    tell_refusal(end, psn, syndrome, EVENT_NAK_SENT, EVENT_RNR_SENT);
}

static void on_gets(struct end *end, uint64_t what, uint64_t length)
{
    story_tell(end, EVENT_PACKET_RECEIVED, op_operation((uint8_t)(what >> 24)), length, what & PSN_MASK);
    end->repeats = false;
}

static void on_hears(struct end *end, uint64_t psn, uint64_t syndrome)
{
    tell_refusal(end, psn, syndrome, EVENT_NAK_RECEIVED, EVENT_RNR_RECEIVED);
}

static void on_posts(struct end *end, uint64_t opcode, uint64_t length)
{
    end->opcodes[end->posted++] = (uint8_t)opcode;
}

static void on_ends(struct end *end, uint64_t id, uint64_t status)
{
    if (status != IBV_WC_WR_FLUSH_ERR)
        story_tell(end, EVENT_SEND_ENDED, id, status, end->opcodes[id]);
}

static void on_receives(struct end *end, uint64_t status, uint64_t length)
{
    uint32_t id = end->received++;
    if (status != IBV_WC_WR_FLUSH_ERR)
        story_tell(end, EVENT_RECEIVE_ENDED, id, status, (uint32_t)length);
}

static void on_drops(struct end *end, uint64_t psn, uint64_t reason)
{
    story_tell(end, EVENT_PACKET_DROPPED, reason, psn, 0);
}

/* A change of the state alone begins no story. */
static void on_enters(struct end *end, uint64_t from, uint64_t to)
{
    if (end->told.count || end->seen.count)
        story_tell(end, EVENT_QP_STATE, from, to, 0);
    end->repeats = false;
}

static void on_expires(struct end *end, uint64_t slow, uint64_t unused)
{
    end->expired = end->flow.now;
}

static const struct {
    const char *what;
    void (*function)(struct end *, uint64_t a, uint64_t b);
} words[] = {
    {"sends", on_sends}, {"reserves", on_reserves}, {"answers", on_answers}, {"gets", on_gets},
    {"hears", on_hears}, {"posts", on_posts},       {"ends", on_ends},       {"receives", on_receives},
    {"drops", on_drops}, {"enters", on_enters},     {"expires", on_expires}, {"renumbers", on_renumbers},
};

void story_noted(struct watcher *watcher, const struct watched *watched, const char *what, uint64_t a, uint64_t b)
{
    struct end *end = story_end(watcher, watched);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i].what, what))
            words[i].function(end, a, b);
}
