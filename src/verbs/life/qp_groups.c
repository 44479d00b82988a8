#include "verbs/life/qp_groups.h"

#include "verbs/qp/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/link_layer.h"
#include "events/refusal.h"
#include "events/words.h"
#include "process/port.h"
#include "verbs/object/control.h"
#include "verbs/send/multicast.h"

static bool is_joined(const struct process *process, const union ibv_gid *gid)
{
    const struct group *group;
    LIST_FOREACH (group, &process_objects(process)->groups, siblings)
        if (!memcmp(&group->gid, gid, sizeof *gid))
            return true;
    return false;
}

/* Takes a member out of all lists. With the process's last member of the group, the network's group is left, too. */
static void leave_group(struct group *group)
{
    struct process *process = group->qp->process;
    group->qp->object.uses--;
    LIST_REMOVE(group, mine);
    LIST_REMOVE(group, siblings);
    if (!process->forked)
        node_leave(process->node, group->gid.raw);
    if (!process->forked && !is_joined(process, &group->gid))
        port_leave(process, &group->gid);
    free(group);
}

void qp_leave_groups(struct qp *qp)
{
    struct group *group;
    control_lock(qp->object.context);
    lock_take(&qp->process->progress);
    while ((group = LIST_FIRST(&qp->groups.joined)))
        leave_group(group);
    lock_release(&qp->process->progress);
    control_unlock(qp->object.context);
}

static struct group *find_group(struct qp *qp, const union ibv_gid *gid)
{
    struct group *group;
    LIST_FOREACH (group, &qp->groups.joined, mine)
        if (!memcmp(&group->gid, gid, sizeof *gid))
            return group;
    return NULL;
}

/* Joins the group on the network with the process's first member. Under progress. */
static int join_network(struct process *process, const union ibv_gid *gid)
{
    lock_assert_held(&process->progress);
    int error = is_joined(process, gid) ? 0 : port_join(process, gid);
    if (error)
        node_leave(process->node, gid->raw);
    return error;
}

/* 0, or the errno of a refusal. */
static int check_group(const struct qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    char text[WORDS_GID];
    if (!(qp->traits & QP_DATAGRAM))
        return refuse(EINVAL, REASON_GROUP_QP, "qp 0x%x", qp->number);
    enum reason reason = link_layer_check_group(qp->object.context->device, gid, lid);
    return reason ? refuse(EINVAL, reason, "qp 0x%x, gid %s, lid 0x%x", qp->number, words_gid(gid, text), lid) : 0;
}

/* Refuses a group for which the host's table has no place; errors of the network are returned as they are. */
static int refuse_join(const struct qp *qp, const union ibv_gid *gid, int error)
{
    char text[WORDS_GID];
    if (error == ENOSPC)
        return refuse(error, REASON_GROUPS_FULL, "qp 0x%x, gid %s, max_mcast_grp %u", qp->number, words_gid(gid, text),
                      qp->object.context->device->limits.max_groups);
    return error;
}

/* ibv_attach_mcast(3): attaching twice is one attachment. It counts as a use of the queue pair, which can't be
 * destroyed before (ibv_create_qp(3)). */
int qp_attach(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
    struct qp *qp = qp_of(ibv);
    int refusal = qp_is_known(ibv) ? check_group(qp, gid, lid) : refused(ENOENT);
    if (refusal)
        return refusal;
    struct group *group = calloc(1, sizeof *group);
    if (!group)
        return ENOMEM;
    control_lock(qp->object.context);
    int error = find_group(qp, gid) ? not_refused(EEXIST)
                                    : node_join(qp->process->node, gid->raw); /* may wait for other processes */
    lock_take(&qp->process->progress);
    error = error ? error : join_network(qp->process, gid);
    if (!error) {
        group->qp = qp;
        group->gid = *gid;
        LIST_INSERT_HEAD(&qp->groups.joined, group, mine);
        LIST_INSERT_HEAD(&process_objects(qp->process)->groups, group, siblings);
        qp->object.uses++;
    }
    lock_release(&qp->process->progress);
    control_unlock(qp->object.context);
    if (error)
        free(group);
    return error == EEXIST ? 0 : refuse_join(qp, gid, error);
}

int qp_detach(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
    struct qp *qp = qp_of(ibv);
    if (!qp_is_known(ibv))
        return refused(ENOENT);
    control_lock(qp->object.context);
    lock_take(&qp->process->progress);
    struct group *group = find_group(qp, gid);
    if (group)
        leave_group(group);
    lock_release(&qp->process->progress);
    control_unlock(qp->object.context);
    char text[WORDS_GID];
    return group ? 0 : refuse(EINVAL, REASON_GROUP_NOT_JOINED, "qp 0x%x, gid %s", qp->number, words_gid(gid, text));
}
