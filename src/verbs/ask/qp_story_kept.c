#include "verbs/ask/qp_story_kept.h"

#include <errno.h>
#include <stdlib.h>

#include "base/uncancelled.h"
#include "diag/kept_story.h"
#include "events/drops.h"
#include "verbs/ask/cq_report.h"
#include "verbs/ask/qp_story.h"
#include "verbs/ask/qp_story_log.h"
#include "verbs/ask/qp_story_messages.h"
#include "verbs/ask/qp_story_report.h"
#include "verbs/ask/qp_waits.h"
#include "verbs/qp/qp_datapath.h"

/* Flushed work, and messages of SRD that failed. */
static uint32_t flushed(const struct story *story)
{
    return story->error.flushed_sends + story->error.flushed_receives + qp_story_messages_count(story);
}

static void write_story(struct qp *qp, kept_story_adder *add)
{
    struct story *story = qp_flow(qp)->story;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    story->kept = true;
    story->kept_waiting = !story->error.reason && !story->error.flushed_sends;
    story->kept_flushed = flushed(story);
    qp_story_report(out, qp);
    fputs("\n", out);
    if (!fclose(out))
        add(text, size);
    free(text);
}

/* Keeps errno, which streams of the C library change: a call such as ibv_post_send(3) may be under way and succeed. */
static void keep_story(struct qp *qp, kept_story_adder *add)
{
    int error = errno, before = uncancelled_begin();
    write_story(qp, add);
    uncancelled_end(before);
    errno = error;
}

void qp_story_keep(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    const struct story *story = qp_story_settle(qp)->story;
    if (!story || (!story->error.reason && !story->error.flushed_sends) || !kept_story_may(false))
        return;
    keep_story(qp, kept_story_add);
    qp_story_log(qp->number, story, traffic_written(qp_flow(qp)), qp_story_now());
}

void qp_story_keep_first(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    const struct story *story = qp_story_settle(qp)->story;
    if (story && !story->kept)
        qp_story_keep(qp);
}

/* Returns true if a message was refused for now (RNR) or dropped, and no receive has ended since. */
static bool lets_wait(const struct story *story, uint32_t at)
{
    for (unsigned back = 1; back <= STORY_RECORDS; back++) {
        const struct story_record *record = story_record(story, at, back);
        if (!record->time || record->event == EVENT_RECEIVE_ENDED)
            return false;
        if (record->event == EVENT_RNR_SENT ||
            (record->event == EVENT_PACKET_DROPPED && drops_lose((unsigned)record->a)))
            return true;
    }
    return false;
}

static bool has_work(const struct qp *qp)
{
    const struct send_queue *queue = engine_queue((struct engine *)qp_engine(qp));
    return queue->head != queue->tail;
}

/* Returns true if completions are old and unpolled. A program that ends at once does not want its completions; a
 * program that waits in vain gives up after some time. */
static bool has_waited(const struct qp *qp, const struct story *story)
{
    const nanos timeout = NANOS_SECOND / 2;
    if (qp->state == IBV_QPS_ERR ||
        (!cq_report_waits(qp->uses.send_cq, qp->number) && !cq_report_waits(qp->uses.receive_cq, qp->number)))
        return false;
    return nanos_since(qp_story_last_ended(story, traffic_written(qp_flow((struct qp *)qp))), qp_story_now()) > timeout;
}

static bool is_worth_keeping(const struct qp *qp, const struct story *story)
{
    return has_work(qp) || story->refused || lets_wait(story, traffic_written(qp_flow((struct qp *)qp))) ||
           has_waited(qp, story);
}

/* Returns true if the kept story is outdated: work was flushed since, or a queue pair that waited has ended. */
static bool is_outdated(const struct story *story)
{
    return story->kept && (story->kept_waiting || story->kept_flushed != flushed(story));
}

void qp_story_end(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    struct story *story = qp_story_settle(qp)->story;
    if (!story)
        return;
    bool told = !story->kept && qp_waits_end(qp, story, traffic_written(qp_flow(qp)));
    if (is_outdated(story)) {
        keep_story(qp, kept_story_renew);
        story->kept_waiting = false; /* of two ends, the queue pair's and the process's, one renews it */
    } else if (!story->kept && (told || is_worth_keeping(qp, story)) && kept_story_may(true))
        keep_story(qp, kept_story_add);
}

/* Returns true if the last message, in either direction, found no receive. */
static bool lacks_receive(const struct story *story, uint32_t at)
{
    for (unsigned back = 1; back <= STORY_RECORDS; back++) {
        const struct story_record *record = story_record(story, at, back);
        if (!record->time || record->event == EVENT_RECEIVE_ENDED || record->event == EVENT_SEND_ENDED)
            return false;
        if (record->event == EVENT_RNR_SENT || record->event == EVENT_RNR_RECEIVED)
            return true;
    }
    return false;
}

bool qp_story_lacks_receive(const struct qp *qp, uint32_t *moved)
{
    lock_assert_held(&qp->lock);
    const struct counts *counts = &qp_flow((struct qp *)qp)->counts;
    bool met_none = counts_number(counts, EVENT_RNR_SENT) || counts_number(counts, EVENT_RNR_RECEIVED);
    if (!met_none || !qp_is_reliable(qp) || qp->state == IBV_QPS_ERR)
        return false; /* in most cases, without a look at the story, which is on another page of memory */
    const struct engine *engine = qp_engine(qp);
    const struct story *story = qp_story_settle(qp)->story;
    *moved = engine_expected_psn(engine) + engine_queue((struct engine *)engine)->head;
    return story && lacks_receive(story, traffic_written(qp_flow((struct qp *)qp)));
}

void qp_story_wait(struct qp *qp)
{
    lock_assert_held(&qp->lock);
    const struct story *story = qp_story_settle(qp)->story;
    if (story && !story->kept && qp->state != IBV_QPS_ERR && kept_story_may(true))
        keep_story(qp, kept_story_add);
}
