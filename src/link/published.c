#include "link/published.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/file_limit.h"
#include "base/mapping.h"

enum { PUBLISHED_MAGIC = 0x50767473 /* "stvP" */, PUBLISHED_LAYOUT = 3 };

struct published_file {
    uint32_t magic, layout;
    atomic_bool open;
    _Alignas(64) atomic_uint voucher; /* link/voucher.h */
    struct published_key keys[PUBLISHED_KEYS];
    struct published_queue_pair queue_pairs[PUBLISHED_QUEUE_PAIRS];
};

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

/* Set when the owner has its own mapping: after that no process maps the file writable, no page of it can be removed,
 * and the seals stay. */
static const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

static int published_map_as(struct published *published, int descriptor, int protection)
{
    void *at = mapping_make(sizeof(struct published_file), protection, MAP_SHARED, descriptor, 0);
    if (at == MAP_FAILED)
        return errno;
    published->file = at;
    return 0;
}

/* Seals the file. Returns 0 or errno: EINVAL of a kernel without F_SEAL_FUTURE_WRITE, where nothing is published. */
static int published_fill(struct published *published, int descriptor)
{
    if (ftruncate(descriptor, sizeof(struct published_file)))
        return errno;
    int error = published_map_as(published, descriptor, PROT_READ | PROT_WRITE);
    if (error)
        return error;
    published->file->magic = PUBLISHED_MAGIC;
    published->file->layout = PUBLISHED_LAYOUT;
    return fcntl(descriptor, F_ADD_SEALS, seals) ? errno : 0;
}

int published_create(struct published *published)
{
    *published = (struct published){.descriptor = -1};
    if (file_limit_forbids(sizeof(struct published_file)))
        return EFBIG;
    int descriptor = descriptor_raise(memfd_create("softverbs-keys", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (descriptor < 0)
        return errno;
    int error = published_fill(published, descriptor);
    if (error) {
        published_close(published);
        close(descriptor);
        return error;
    }
    published->descriptor = descriptor;
    return 0;
}

void published_close(struct published *published)
{
    if (published->file)
        munmap(published->file, sizeof *published->file);
    descriptor_close(&published->descriptor);
    *published = (struct published){.descriptor = -1};
}

void published_vouch(struct published *published)
{
    if (published->file)
        voucher_take(&published->voucher, &published->file->voucher);
}

void published_retract(struct published *published)
{
    voucher_give_back(&published->voucher);
}

void published_open(struct published *published, bool open)
{
    if (published->file)
        atomic_exchange(&published->file->open, open);
}

static struct published_key *published_key_at(const struct published *published, uint32_t key)
{
    return &published->file->keys[(key >> 8) % PUBLISHED_KEYS]; /* the low byte distinguishes uses of one place */
}

static struct published_queue_pair *published_queue_pair_at(const struct published *published, uint32_t number)
{
    return &published->file->queue_pairs[number % PUBLISHED_QUEUE_PAIRS];
}

bool published_key(struct published *published, uint32_t key, const struct published_key *from)
{
    struct published_key *to = published->file ? published_key_at(published, key) : NULL;
    if (!to || atomic_load_explicit(&to->key, memory_order_relaxed))
        return false;
    to->access = from->access;
    to->domain = from->domain;
    to->base = from->base;
    to->length = from->length;
    to->memory = from->memory;
    atomic_store_explicit(&to->key, key, memory_order_release);
    return true;
}

/* The numbers of a process are of a few blocks, but two numbers may have one place; then the threads of both queue
 * pairs race for it. */
bool published_queue_pair(struct published *published, uint32_t number, const struct published_queue_pair *from)
{
    struct published_queue_pair *to = published->file ? published_queue_pair_at(published, number) : NULL;
    unsigned none = 0;
    if (!to || !atomic_compare_exchange_strong(&to->number, &none, UINT32_MAX))
        return false;
    to->peer = from->peer;
    to->access = from->access;
    to->first_psn = from->first_psn;
    to->peer_psn = from->peer_psn;
    to->max_dest_rd_atomic = from->max_dest_rd_atomic;
    to->domain = from->domain;
    atomic_store_explicit(&to->number, number, memory_order_release);
    return true;
}

/* The exchange is the fence of a Dekker pair: see link/direct.h. */
bool published_withdraw_key(struct published *published, uint32_t key)
{
    struct published_key *at = published->file ? published_key_at(published, key) : NULL;
    if (!at || atomic_load_explicit(&at->key, memory_order_relaxed) != key)
        return false;
    atomic_exchange(&at->key, 0);
    return true;
}

bool published_withdraw_queue_pair(struct published *published, uint32_t number)
{
    struct published_queue_pair *at = published->file ? published_queue_pair_at(published, number) : NULL;
    if (!at || atomic_load_explicit(&at->number, memory_order_relaxed) != number)
        return false;
    atomic_exchange(&at->number, 0);
    return true;
}

/* A file that could shrink, or is in a file system that may run out of space, would cause a SIGBUS later. In a file
 * that others may write, the owner would not be the only one that says where its memory is. */
static bool published_is_safe(int descriptor)
{
    struct stat status;
    struct statfs system;
    int present = fcntl(descriptor, F_GET_SEALS);
    return present >= 0 && (present & seals) == seals && !fstat(descriptor, &status) && !fstatfs(descriptor, &system) &&
           system.f_type == TMPFS_MAGIC && status.st_size == sizeof(struct published_file);
}

int published_map(struct published *published, int descriptor)
{
    *published = (struct published){.descriptor = -1};
    int error = published_is_safe(descriptor) ? published_map_as(published, descriptor, PROT_READ) : EINVAL;
    if (error)
        return error;
    if (published->file->magic == PUBLISHED_MAGIC && published->file->layout == PUBLISHED_LAYOUT)
        return 0;
    published_close(published);
    return EINVAL;
}

/* The rule that the responder has for a request that arrives as a packet. */
static bool published_key_permits(const struct published_key *key, const struct published_question *question,
                                  uint64_t domain)
{
    unsigned access = question->write ? PUBLISHED_WRITE : PUBLISHED_READ;
    uint64_t offset = question->address - key->base;
    return atomic_load(&key->key) == question->key && key->domain == domain && key->access & access &&
           question->address >= key->base && question->length <= key->length &&
           offset <= key->length - question->length;
}

/* READs that are done one after the other are never too many at once, but as packets they may be. So they stay packets,
 * which the responder counts, where the asking queue pair may have more outstanding than this one keeps results for. */
static bool published_queue_pair_permits(const struct published_queue_pair *queue_pair,
                                         const struct published_question *question)
{
    unsigned access = question->write ? PUBLISHED_WRITE : PUBLISHED_READ;
    return atomic_load(&queue_pair->number) == question->number &&
           (queue_pair->peer == question->own_number || queue_pair->peer == PUBLISHED_ALL) &&
           queue_pair->access & access && question->max_rd_atomic <= queue_pair->max_dest_rd_atomic &&
           (queue_pair->first_psn == question->first_psn || queue_pair->first_psn == PUBLISHED_NO_PSN) &&
           queue_pair->peer_psn == question->own_psn;
}

bool published_place(const struct published *published, const struct published_question *question, uint64_t *memory)
{
    const struct published_key *key = published_key_at(published, question->key);
    if (!question->key || atomic_load(&key->key) != question->key)
        return false;
    *memory = key->memory + (question->address - key->base);
    return true;
}

bool published_permits(const struct published *published, const struct published_question *question, uint64_t *memory)
{
    const struct published_file *file = published->file;
    const struct published_queue_pair *queue_pair = published_queue_pair_at(published, question->number);
    const struct published_key *key = published_key_at(published, question->key);
    if (!atomic_load(&file->open) || !question->key || !published_queue_pair_permits(queue_pair, question) ||
        !published_key_permits(key, question, queue_pair->domain))
        return false;
    *memory = key->memory + (question->address - key->base);
    return voucher_holds(&file->voucher);
}
