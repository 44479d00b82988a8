#include "mlx5/queues/addresses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "config/device.h"
#include "config/link_layer.h"
#include "verbs/object/object.h"
#include "verbs/object/process_objects.h"
#include "verbs/send/ah.h"
#include "wire/bytes.h"

enum { ADDRESSES_MOST = 65536, BUCKETS = 1024 };

/* A receiver. The rest of an address, as its source port, does not matter here. All bytes are set. */
struct destination {
    uint64_t device;
    uint8_t gid[16];
    uint16_t lid;
    uint8_t global, gid_index, traffic_class, sl, rest[2];
};

struct address {
    LIST_ENTRY(address) siblings;
    struct destination to;
    struct ah *ah;
};

struct address_book {
    LIST_HEAD(, address) buckets[BUCKETS];
    uint32_t count;
};

static struct destination destination_of(const struct device *device, const struct ibv_ah_attr *attr)
{
    struct destination to;
    memset(&to, 0, sizeof to);
    to.device = (uint64_t)(uintptr_t)device;
    to.sl = attr->sl;
    to.lid = link_layer_is_infiniband(device) ? attr->dlid : 0;
    if (!attr->is_global)
        return to;
    to.global = true;
    memcpy(to.gid, attr->grh.dgid.raw, sizeof to.gid);
    to.gid_index = attr->grh.sgid_index;
    to.traffic_class = attr->grh.traffic_class;
    return to;
}

static unsigned bucket_of(const struct destination *to)
{
    uint64_t words[sizeof *to / sizeof(uint64_t)], sum = 0;
    memcpy(words, to, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15;
    return (unsigned)((sum >> 32) % BUCKETS);
}

/* The addresses of the process, which the first call makes; NULL: no memory. */
static struct address_book *book_of(struct process *process)
{
    lock_assert_held(&process->progress);
    struct address_book **book = &process_objects(process)->queues.addresses;
    if (!*book)
        *book = calloc(1, sizeof **book);
    return *book;
}

static struct ah *find_address(const struct address_book *book, const struct destination *to)
{
    struct address *address;
    LIST_FOREACH (address, &book->buckets[bucket_of(to)], siblings)
        if (!memcmp(&address->to, to, sizeof *to))
            return address->ah;
    return NULL;
}

/* Returns false if there is no memory, or too many are kept. */
static bool keep_address(struct address_book *book, const struct destination *to, struct ah *ah)
{
    struct address *address = book->count < ADDRESSES_MOST ? calloc(1, sizeof *address) : NULL;
    if (!address)
        return false;
    address->to = *to;
    address->ah = ah;
    book->count++;
    LIST_INSERT_HEAD(&book->buckets[bucket_of(to)], address, siblings);
    return true;
}

int addresses_keep(const struct ah *described)
{
    struct context *context = context_of(described->ibv.context);
    struct process *process = context->process;
    struct destination to = destination_of(context->device, &described->attr);
    struct ah *made = ah_make(context, &described->attr);
    if (!made)
        return errno;
    lock_take(&process->progress);
    struct address_book *book = book_of(process);
    bool known = book && find_address(book, &to), kept = book && !known && keep_address(book, &to, made);
    lock_release(&process->progress);
    if (!kept)
        ah_unmake(made, process);
    return kept || known ? 0 : ENOMEM;
}

/* The attributes that an address stands for. */
static struct ibv_ah_attr read_address(const struct device *device, const uint8_t *at, bool extended)
{
    enum { RATE_SL = 12, LID = 14, CLASS = 26, HOPS = 27, GRH = 28, GID = 32 };
    bool infiniband = link_layer_is_infiniband(device);
    struct ibv_ah_attr attr = {.port_num = 1, .dlid = infiniband ? bytes_get16(at + LID) : 0};
    attr.sl = infiniband ? at[RATE_SL] & 0xf : at[RATE_SL] >> 1 & 0x7;
    uint32_t grh = extended ? bytes_get32(at + GRH) : 0;
    attr.is_global = extended && (!infiniband || grh >> 30 & 1);
    if (!attr.is_global)
        return attr;
    attr.grh = (struct ibv_global_route){.flow_label = grh & 0xfffff,
                                         .sgid_index = (uint8_t)(grh >> 20),
                                         .hop_limit = at[HOPS],
                                         .traffic_class = at[CLASS]};
    memcpy(attr.grh.dgid.raw, at + GID, sizeof attr.grh.dgid.raw);
    return attr;
}

/* An address that the program has made by itself is kept where no other host has to be found for it. */
const struct ah *addresses_find(struct context *context, const uint8_t *at, bool extended)
{
    struct address_book *book = book_of(context->process);
    struct ibv_ah_attr attr = read_address(context->device, at, extended);
    struct destination to = destination_of(context->device, &attr);
    struct ah *found = book ? find_address(book, &to) : NULL;
    if (found || !book || context->device->interface[0] || ah_check(context, &attr))
        return found;
    found = ah_make(context, &attr);
    if (!found || keep_address(book, &to, found))
        return found;
    ah_unmake(found, context->process);
    return NULL;
}

void addresses_end(struct process *process)
{
    lock_take(&process->progress);
    struct address_book *book = process_objects(process)->queues.addresses;
    process_objects(process)->queues.addresses = NULL;
    lock_release(&process->progress);
    struct address *address;
    for (unsigned i = 0; book && i < BUCKETS; i++)
        while ((address = LIST_FIRST(&book->buckets[i]))) {
            LIST_REMOVE(address, siblings);
            ah_unmake(address->ah, process);
            free(address);
        }
    free(book);
}
