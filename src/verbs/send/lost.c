#include "verbs/send/lost.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "diag/log.h"
#include "ipc/node.h"
#include "process/process.h"
#include "verbs/object/lost_pairs.h"
#include "verbs/qp/qp_tell.h"
#include "wire/psn.h"

enum { QPN_BITS = 24, SHORT_BITS = 16, HINT = 128 };

/* Returns the only number of this host with these lower 16 bits; 0: several or no numbers have them, or `number` has
 * more bits. */
static uint32_t lengthen(const struct node *node, uint32_t number)
{
    uint32_t found = 0;
    for (uint32_t upper = 1; number < 1u << SHORT_BITS && upper < 1u << (QPN_BITS - SHORT_BITS); upper++) {
        uint32_t longer = upper << SHORT_BITS | number;
        if (!node_is_claimed(node, longer))
            continue;
        if (found)
            return 0;
        found = longer;
    }
    return found;
}

/* Writes what may be wrong with a number that no process has. False: nothing is known. */
static bool write_hint(const struct node *node, uint32_t number, char hint[HINT])
{
    uint32_t swapped = __builtin_bswap32(number), longer = lengthen(node, number);
    *hint = 0;
    if (swapped <= PSN_MASK && node_is_claimed(node, swapped))
        snprintf(hint, HINT, "; with its bytes in the other order it is one of this host, 0x%x (ntohl)", swapped);
    else if (longer)
        snprintf(hint, HINT, "; with other upper bits it is one of this host, 0x%x (a number has 24 bits)", longer);
    return *hint;
}

/* A process that has ended may have had the number, so that the loss is a mistake for certain only if there is a hint,
 * or if all processes that this one met still live. */
void lost_to_nobody(struct qp *qp, uint32_t number, uint32_t psn)
{
    struct node *node = process_node(qp->process);
    char hint[HINT];
    lock_assert_held(&qp->lock);
    if (!node || node_is_lost(node) || node_is_claimed(node, number))
        return;
    qp_tell_lost(qp, REASON_PACKET_NOBODY, psn);
    bool first = lost_pairs_is_first(REASON_PACKET_NOBODY, qp->number, number);
    if (!log_wanted(first ? LOG_WARN : LOG_INFO))
        return;
    bool mistaken = write_hint(node, number, hint) || !node_has_lost_peers(node);
    log_reason(first && mistaken ? LOG_WARN : LOG_INFO, REASON_PACKET_NOBODY, "qp 0x%x: a datagram to qp 0x%x%s",
               qp->number, number, hint);
}

void lost_in_group(struct qp *qp, const union ibv_gid *group, uint32_t psn)
{
    char text[INET6_ADDRSTRLEN];
    uint32_t parts[4];
    lock_assert_held(&qp->lock);
    memcpy(parts, group, sizeof parts);
    qp_tell_lost(qp, REASON_PACKET_GROUP_EMPTY, psn);
    bool first = lost_pairs_is_first(REASON_PACKET_GROUP_EMPTY, qp->number, parts[0] ^ parts[1] ^ parts[2] ^ parts[3]);
    log_reason(first ? LOG_WARN : LOG_INFO, REASON_PACKET_GROUP_EMPTY, "qp 0x%x: a datagram to %s", qp->number,
               inet_ntop(AF_INET6, group, text, sizeof text));
}
