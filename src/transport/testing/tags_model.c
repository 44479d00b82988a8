#include "transport/testing/tags_model.h"

#include <errno.h>
#include <infiniband/tm_types.h>
#include <string.h>

void model_start(struct model *model, uint32_t capacity)
{
    memset(model, 0, sizeof(*model));
    model->capacity = capacity;
}

/* Resumes normal matching once software has processed all unexpected messages. */
static void take_report(struct model *model, const struct ibv_ops_wr *wr)
{
    if (wr->flags & IBV_OPS_TM_SYNC)
        model->processed = (uint16_t)wr->tm.unexpected_cnt;
}

static void resume(struct model *model)
{
    if (model->processed != model->unexpected)
        return;
    for (uint32_t i = 0; i < model->count; i++)
        model->list[i].enabled = true;
}

static int add(struct model *model, const struct ibv_ops_wr *wr)
{
    uint32_t arriving = 0; /* buffers that a message is being stored into */
    for (int i = 0; i < MODEL_SENDERS; i++)
        arriving += model->open[i].open && model->open[i].tagged;
    if (model->count + model->rendezvous_count + arriving >= model->capacity)
        return ENOMEM;
    struct model_entry *entry = &model->list[model->count++];
    *entry = (struct model_entry){
        .tag = wr->tm.add.tag, .mask = wr->tm.add.mask, .id = wr->tm.add.recv_wr_id, .handle = wr->tm.handle};
    for (int i = 0; i < wr->tm.add.num_sge; i++)
        entry->room += wr->tm.add.sg_list[i].length;
    return 0;
}

static void remove_at(struct model *model, uint32_t at)
{
    memmove(&model->list[at], &model->list[at + 1], (--model->count - at) * sizeof(*model->list));
}

static bool delete_entry(struct model *model, uint32_t handle)
{
    for (uint32_t i = 0; i < model->count; i++)
        if (model->list[i].handle == handle)
            return remove_at(model, i), true;
    return false;
}

int model_operate(struct model *model, const struct ibv_ops_wr *wr, struct model_event *event, bool *completes)
{
    int error = 0;
    bool deleted = true;
    *completes = false;
    if (wr->opcode == IBV_WR_TAG_ADD)
        error = add(model, wr);
    else if (wr->opcode == IBV_WR_TAG_DEL)
        deleted = delete_entry(model, wr->tm.handle);
    else if (wr->opcode != IBV_WR_TAG_SYNC)
        error = EINVAL;
    if (error)
        return error;
    take_report(model, wr);
    resume(model);
    *completes = wr->flags & IBV_OPS_SIGNALED || !deleted;
    *event = (struct model_event){
        .id = wr->wr_id,
        .status = deleted ? IBV_WC_SUCCESS : IBV_WC_TM_ERR,
        .opcode = wr->opcode == IBV_WR_TAG_ADD   ? IBV_WC_TM_ADD
                  : wr->opcode == IBV_WR_TAG_DEL ? IBV_WC_TM_DEL
                                                 : IBV_WC_TM_SYNC,
        .flags = model->processed == model->unexpected ? 0 : IBV_WC_TM_SYNC_REQ,
    };
    return 0;
}

static uint64_t big(const uint8_t *bytes, unsigned count)
{
    uint64_t value = 0;
    while (count--)
        value = value << 8 | *bytes++;
    return value;
}

static bool can_match(const uint8_t *bytes, uint32_t count, bool whole)
{
    if (count < sizeof(struct ibv_tmh))
        return false;
    if (bytes[0] == IBV_TMH_EAGER)
        return true;
    return bytes[0] == IBV_TMH_RNDV && whole && count >= 32 && count <= 64;
}

static bool match(struct model *model, struct model_open *open)
{
    for (uint32_t i = 0; i < model->count; i++) {
        if (!model->list[i].enabled || (open->tag & model->list[i].mask) != model->list[i].tag)
            continue;
        open->entry = model->list[i];
        remove_at(model, i);
        return true;
    }
    return false;
}

bool model_begin(struct model *model, int sender, const uint8_t *bytes, uint32_t count, bool whole, bool has_receive)
{
    struct model_open *open = &model->open[sender];
    *open = (struct model_open){0};
    open->whole = whole;
    if (can_match(bytes, count, whole)) {
        open->rendezvous = bytes[0] == IBV_TMH_RNDV;
        open->application = (uint32_t)big(bytes + 4, 4);
        open->tag = big(bytes + 8, 8);
        open->length = open->rendezvous ? (uint32_t)big(bytes + 28, 4) : 0;
        open->tagged = match(model, open);
        open->counted = !open->tagged;
    }
    if (!open->tagged && !has_receive)
        return false;
    open->open = true;
    model->unexpected += open->counted;
    return true;
}

bool model_matches(struct model *model, int sender, struct model_event *event)
{
    struct model_open *open = &model->open[sender];
    open->told = open->open && open->tagged && !open->rendezvous && !open->whole;
    *event = (struct model_event){.id = open->entry.id,
                                  .opcode = IBV_WC_TM_RECV,
                                  .flags = IBV_WC_TM_MATCH,
                                  .tag = open->tag,
                                  .application = open->application};
    return open->told;
}

bool model_is_late(struct model *model, int sender, struct model_event *event)
{
    struct model_open *open = &model->open[sender];
    if (!open->open || open->told)
        return false;
    open->whole = false;
    return model_matches(model, sender, event);
}

bool model_is_untagged(const struct model *model, int sender)
{
    return !model->open[sender].tagged;
}

static void end_untagged(struct model *model, const struct model_open *open, struct model_event *event)
{
    event->opcode = open->counted ? IBV_WC_TM_RECV : IBV_WC_TM_NO_TAG;
    if (open->counted && event->status != IBV_WC_SUCCESS) {
        model->unexpected--;
        resume(model);
    } else if (open->counted && (uint16_t)(model->unexpected - model->processed) > 0x8000)
        event->flags = IBV_WC_TM_SYNC_REQ;
}

void model_end(struct model *model, int sender, uint64_t receive, uint32_t length, enum ibv_wc_status status,
               struct model_event *event)
{
    struct model_open *open = &model->open[sender];
    open->open = false;
    *event = (struct model_event){.id = receive, .status = status, .length = length};
    if (!open->tagged) {
        end_untagged(model, open, event);
        return;
    }
    event->id = open->entry.id;
    event->opcode = IBV_WC_TM_RECV;
    event->tag = open->told ? 0 : open->tag;
    event->application = open->told ? 0 : open->application;
    if (status != IBV_WC_SUCCESS)
        return;
    if (!open->rendezvous) {
        event->flags = open->told ? IBV_WC_TM_DATA_VALID : IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID;
        event->length = length - (uint32_t)sizeof(struct ibv_tmh);
    } else if (open->length > open->entry.room) {
        event->status = IBV_WC_TM_RNDV_INCOMPLETE;
    } else {
        event->flags = IBV_WC_TM_MATCH;
        event->length = 0;
        open->entry.sender = sender;
        open->entry.length = open->length;
        model->rendezvous[model->rendezvous_count++] = open->entry;
    }
}

void model_rendezvous_end(struct model *model, uint64_t id, enum ibv_wc_status status, struct model_event *event)
{
    uint32_t at = 0;
    while (at < model->rendezvous_count && model->rendezvous[at].id != id)
        at++;
    *event = (struct model_event){.id = id, .status = status, .opcode = IBV_WC_TM_RECV};
    if (at == model->rendezvous_count) {
        event->status = IBV_WC_GENERAL_ERR; /* the rendezvous is unknown: no implementation answers this */
        return;
    }
    event->flags = IBV_WC_TM_DATA_VALID;
    event->length = model->rendezvous[at].length;
    model->rendezvous[at] = model->rendezvous[--model->rendezvous_count];
}

uint32_t model_rendezvous_of(const struct model *model, int sender, uint64_t *ids)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->rendezvous_count; i++)
        if (model->rendezvous[i].sender == sender)
            ids[count++] = model->rendezvous[i].id;
    return count;
}
