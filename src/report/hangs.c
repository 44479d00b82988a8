#include "report/hangs.h"

#include <string.h>

#include "diag/log.h"
#include "diag/log_room.h"
#include "diagnose/diagnose.h"
#include "report/object_types.h"
#include "verbs/ask/cq_report.h"
#include "verbs/ask/qp_story_kept.h"
#include "verbs/ask/qp_waits.h"
#include "verbs/queue/comp_channel.h"

enum {
    HANGS_MOST = 32,  /* objects that are followed */
    HANGS_STORIES = 4 /* queue pairs of a completion queue whose stories are kept */
};

/* The state of a waiting object at one look. */
struct hang {
    uint32_t handle, value; /* the value changes whenever something happens at the object */
    enum reason reason;
    bool told;
};

/* The objects that waited at the last look. There is one struct process only, whose progress lock keeps looks apart. */
static struct hang before[HANGS_MOST];

struct hangs {
    struct hang list[HANGS_MOST];
    unsigned count;
    bool untold;                     /* something waits that was not logged */
    bool asked;                      /* this look has asked a peer's process */
    uint32_t waiting[HANGS_STORIES]; /* numbers of queue pairs whose completions wait */
    unsigned waiting_count;
};

static struct hang *find_before(const struct hang *now)
{
    for (unsigned i = 0; i < HANGS_MOST; i++)
        if (before[i].reason == now->reason && before[i].handle == now->handle && before[i].value == now->value)
            return &before[i];
    return NULL;
}

/* Adds an object that waits. True: it waited at the last look, too, and was not logged yet. */
static bool add(struct hangs *hangs, struct hang now)
{
    const struct hang *old = find_before(&now);
    if (hangs->count == HANGS_MOST)
        return false;
    now.told = old;
    hangs->untold |= !old;
    hangs->list[hangs->count++] = now;
    return old && !old->told;
}

/* Keeps the result of the last look for an object whose lock is taken. */
static void keep_busy(struct hangs *hangs, uint32_t handle, enum reason reason)
{
    hangs->untold = true;
    for (unsigned i = 0; i < HANGS_MOST && hangs->count < HANGS_MOST; i++)
        if (before[i].reason == reason && before[i].handle == handle)
            hangs->list[hangs->count++] = before[i];
}

/* A queue pair with `rnr_retry` 7 tries for ever, and a person kills its process: so its story is kept before that. */
static void keep_story_of_missing_receive(struct hangs *hangs, uint32_t handle, struct qp *qp)
{
    struct hang now = {handle, 0, REASON_RECEIVER_NOT_READY, false};
    if (qp_story_lacks_receive(qp, &now.value) && add(hangs, now))
        qp_story_wait(qp);
}

static void look_for_completion(struct hangs *hangs, uint32_t handle, struct qp *qp)
{
    struct hang now = {handle, qp->sends.posted, REASON_NO_COMPLETION, false};
    if (!qp_waits_for_completion(qp) || !add(hangs, now))
        return;
    qp_story_wait(qp);
    qp_waits_tell_completion(qp);
}

/* The first look at the wait asks the peer's process, at most one process in each look; the second has its answer. */
static void look_for_response(struct hangs *hangs, uint32_t handle, struct qp *qp)
{
    struct hang now = {handle, 0, REASON_NO_ANSWER, false};
    if (!qp_waits_for_response(qp, &now.value))
        return;
    bool again = find_before(&now);
    if (add(hangs, now)) {
        qp_story_wait(qp);
        qp_waits_tell_response(qp);
    } else if (!again && !hangs->asked) {
        hangs->asked = true;
        qp_waits_ask(qp);
    }
}

static void look_at_qp(struct hangs *hangs, const struct object *object)
{
    struct qp *qp = qp_real(container_of(object, struct qp, object));
    if (!lock_try(&qp->lock)) {
        keep_busy(hangs, object->handle, REASON_NO_COMPLETION);
        keep_busy(hangs, object->handle, REASON_RECEIVER_NOT_READY);
        keep_busy(hangs, object->handle, REASON_NO_ANSWER);
        return;
    }
    look_for_completion(hangs, object->handle, qp);
    look_for_response(hangs, object->handle, qp);
    keep_story_of_missing_receive(hangs, object->handle, qp);
    lock_release(&qp->lock);
}

static void log_unarmed(const struct facts_cq *cq)
{
    char words[DIAGNOSE_ROOM], text[DIAGNOSE_ROOM];
    const struct known known = {.cq = cq, .words = words};
    diagnose_words(diagnose(DIAGNOSE_EVENT, &known), &known, words, sizeof words);
    log_cause(LOG_WARN, REASON_NOT_ARMED, "%s", diagnose_words(DIAGNOSIS_CQ_UNPOLLED, &known, text, sizeof text));
}

static void look_at_cq(struct hangs *hangs, const struct object *object)
{
    struct cq *cq = container_of(object, struct cq, object);
    if (!cq->channel)
        return;
    if (!lock_try(&cq->lock)) {
        keep_busy(hangs, object->handle, REASON_NOT_ARMED);
        return;
    }
    uint32_t waiting = cq_ring_count(&cq->ring);
    bool unarmed = cq->armed == CQ_UNARMED && !comp_channel_has(cq->channel, cq);
    struct hang now = {object->handle, cq_ring_tail(&cq->ring), unarmed ? REASON_NOT_ARMED : REASON_NONE, false};
    bool waits = waiting && add(hangs, now);
    if (waits && !hangs->waiting_count)
        hangs->waiting_count = cq_ring_users(&cq->ring, hangs->waiting, HANGS_STORIES);
    struct facts_cq facts = {0};
    cq_report_fill(&facts, cq);
    lock_release(&cq->lock);
    if (waits && unarmed)
        log_unarmed(&facts);
}

/* A person kills a program that waits for an event in vain, so the stories of its queue pairs are kept now. */
static void keep_story(struct hangs *hangs, const struct object *object)
{
    struct qp *qp = qp_real(container_of(object, struct qp, object));
    unsigned i = 0;
    while (i < hangs->waiting_count && hangs->waiting[i] != qp->number)
        i++;
    if (i == hangs->waiting_count || !lock_try(&qp->lock))
        return;
    qp_story_wait(qp);
    lock_release(&qp->lock);
}

void hangs_begin(void)
{
    memset(before, 0, sizeof before);
}

/* process->control guards the lists of objects, and comes before the progress lock that the caller holds. While another
 * thread holds process->control, the look is put off. */
bool hangs_look(struct process *process)
{
    lock_assert_held(&process->progress);
    log_settle();
    struct hangs hangs = {0};
    if (!mutex_try(&process->control))
        return true;
    EACH_OBJECT (process, OBJECT_QP, object)
        look_at_qp(&hangs, object);
    EACH_OBJECT (process, OBJECT_CQ, object)
        look_at_cq(&hangs, object);
    EACH_OBJECT (process, OBJECT_QP, object)
        keep_story(&hangs, object);
    mutex_release(&process->control);
    memcpy(before, hangs.list, sizeof before);
    return hangs.untold || log_room_waits();
}
