#include "around/numbers.h"

#include <stdlib.h>

#include "base/container.h"
#include "base/hash.h"
#include "base/static_lock.h"

enum { BUCKETS = 1 << 12 };

struct numbered {
    struct hash_entry by_number;
    struct ibv_qp *qp;
};

MUTEX_STATIC(numbering, LOCK_INNERMOST);
static struct hash_entry *buckets[BUCKETS];
static struct hash all = {buckets, BUCKETS - 1};

void numbers_add(struct ibv_qp *qp)
{
    struct numbered *numbered = calloc(1, sizeof *numbered);
    if (!numbered)
        return;
    numbered->qp = qp;
    mutex_take(&numbering);
    hash_add(&all, &numbered->by_number, qp->qp_num);
    mutex_release(&numbering);
}

/* The entry of a queue pair of this number for which the test holds, or NULL. */
#define FIND(number, found, test)                                                                                      \
    __extension__({                                                                                                    \
        lock_assert_held(&numbering);                                                                                  \
        struct numbered *found = NULL;                                                                                 \
        struct hash_entry *entry = NULL;                                                                               \
        while ((entry = hash_find(&all, number, entry))) {                                                             \
            found = container_of(entry, struct numbered, by_number);                                                   \
            if (test)                                                                                                  \
                break;                                                                                                 \
            found = NULL;                                                                                              \
        }                                                                                                              \
        found;                                                                                                         \
    })

void numbers_remove(const struct ibv_qp *qp)
{
    mutex_take(&numbering);
    struct numbered *numbered = FIND(qp->qp_num, found, found->qp == qp);
    if (numbered)
        hash_remove(&numbered->by_number);
    mutex_release(&numbering);
    free(numbered);
}

struct ibv_qp *numbers_find(const struct ibv_context *context, uint32_t number)
{
    mutex_take(&numbering);
    const struct numbered *numbered = FIND(number, found, found->qp->context == context);
    struct ibv_qp *qp = numbered ? numbered->qp : NULL;
    mutex_release(&numbering);
    return qp;
}
