#include "check/shadow/memory.h"

#include <unistd.h>

#include "check/rule.h"
#include "check/shadow/shadow.h"
#include "link/guard.h"
#include "wire/guarded.h"

enum { SHORT = 64, WHOLE = 4096, LINE = 64, LINES = 64, CHUNK = 512, WRITTEN = 256 };

char *memory_at(const struct ibv_sge *sge)
{
    shadow_assert_locked();
    struct shadow *mr = shadow_find_number(SHADOW_MR, sge->lkey);
    if (!mr || !mr->mr.address)
        return NULL;
    uint64_t offset = sge->addr - mr->mr.iova;
    bool inside = offset <= mr->mr.length && sge->length <= mr->mr.length - offset;
    return inside ? mr->mr.address + offset : NULL;
}

void memory_bound(struct wqe *wqe)
{
    shadow_assert_locked();
    wqe->lowest = wqe->end = NULL;
    for (unsigned at = 0; at < wqe->count; at++) {
        const char *begin = wqe->flags & WQE_INLINE ? NULL : memory_at(&wqe->sges[at]);
        if (!begin)
            continue;
        if (!wqe->end || begin < wqe->lowest)
            wqe->lowest = begin;
        if (begin + wqe->sges[at].length > wqe->end)
            wqe->end = begin + wqe->sges[at].length;
    }
}

/* Returns true if the work may use some of these bytes; a quick look before an exact one. */
static bool may_use(const struct wqe *wqe, const char *begin, const char *end)
{
    return wqe->lowest < end && begin < wqe->end;
}

bool memory_is_for_peers(const struct ibv_sge *sge)
{
    shadow_assert_locked();
    const struct shadow *mr = shadow_find_number(SHADOW_MR, sge->lkey);
    return mr && mr->mr.access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
}

/* Mixes four words at a time, since one multiplication need not wait for the other three. */
static uint64_t hash_words(uint64_t hash, const uint64_t *words, size_t count)
{
    uint64_t lanes[4] = {hash, 1, 2, 3};
    size_t at = 0;
    for (; at + 4 <= count; at += 4)
        for (unsigned lane = 0; lane < 4; lane++)
            lanes[lane] = mix(lanes[lane], words[at + lane]);
    for (; at < count; at++)
        lanes[0] = mix(lanes[0], words[at]);
    return mix(mix(mix(lanes[0], lanes[1]), lanes[2]), lanes[3]);
}

/* Copies the memory, which may be gone; the caller is between guard_begin and guard_end. */
static bool hash_short(uint64_t *hash, const char *from, size_t length)
{
    uint64_t words[SHORT / sizeof(uint64_t)];
    size_t count = (length + 7) / 8;
    words[count - 1] = 0;
    if (!guarded_copy(words, from, length))
        return false;
    for (size_t at = 0; at < count; at++)
        *hash = mix(*hash, words[at]);
    return true;
}

/* Hashes bytes of any length; the caller is between guard_begin and guard_end. */
static bool hash_bytes(uint64_t *hash, const char *from, size_t length)
{
    if (length && length <= SHORT)
        return hash_short(hash, from, length);
    uint64_t words[CHUNK / sizeof(uint64_t)];
    for (size_t done = 0; done < length;) {
        size_t some = length - done < CHUNK ? length - done : CHUNK, count = (some + 7) / 8;
        words[count - 1] = 0;
        if (!guarded_copy(words, from + done, some))
            return false;
        *hash = hash_words(*hash, words, count);
        done += some;
    }
    return true;
}

/* Hashes the first and last bytes, and pieces at even distances between. */
static bool hash_sample(uint64_t *hash, const char *from, size_t length)
{
    enum { AT_ONCE = CHUNK / LINE };
    uint64_t words[CHUNK / sizeof(uint64_t)];
    size_t step = (length - LINE) / (LINES - 1);
    for (size_t line = 0; line < LINES; line++) {
        const char *piece = line < LINES - 1 ? from + line * step : from + length - LINE;
        if (!guarded_copy((char *)words + line % AT_ONCE * LINE, piece, LINE))
            return false;
        if (line % AT_ONCE == AT_ONCE - 1)
            *hash = hash_words(*hash, words, CHUNK / sizeof(uint64_t));
    }
    return true;
}

static bool hash_element(uint64_t *hash, const struct ibv_sge *sge)
{
    const char *from = sge->length ? memory_at(sge) : "";
    bool whole = sge->length <= WHOLE || rule_chosen.full;
    return from && (whole ? hash_bytes : hash_sample)(hash, from, sge->length);
}

bool memory_hash(const struct wqe *wqe, uint64_t *hash)
{
    shadow_assert_locked();
    bool opened = guard_begin_now(), known = true;
    *hash = 0;
    for (unsigned at = 0; known && at < wqe->count; at++)
        known = hash_element(hash, &wqe->sges[at]);
    guard_end(opened);
    return known;
}

bool memory_copy(const struct ibv_sge *sge, void *to)
{
    const char *from = memory_at(sge);
    return from && guard_copy(to, from, sge->length);
}

bool memory_hash_parts(const struct ibv_sge *sge, const struct memory_parts *parts, uint64_t *hashes)
{
    const char *from = memory_at(sge);
    bool opened = guard_begin_now(), known = from;
    unsigned part = 0;
    for (uint32_t at = parts->begin; known && at < parts->end; at += parts->each, part++) {
        hashes[part] = 0;
        known = hash_bytes(&hashes[part], from + at, parts->end - at < parts->each ? parts->end - at : parts->each);
    }
    guard_end(opened);
    return known;
}

/* -- writers and their places */

struct piece {
    const char *begin, *end;
    uint64_t moment;
};

static struct piece written[WRITTEN]; /* the last ones, in a ring */
static unsigned written_next;

static struct piece piece_of(const struct ibv_sge *sge)
{
    const char *begin = memory_at(sge);
    return (struct piece){begin, begin ? begin + sge->length : NULL, 0};
}

static bool is_common(const struct piece *one, const struct piece *other)
{
    bool empty = one->begin >= one->end || other->begin >= other->end;
    return !empty && one->begin < other->end && other->begin < one->end;
}

void memory_note_written(const struct wqe *wqe)
{
    shadow_assert_locked();
    for (unsigned at = 0; at < wqe->count; at++) {
        written[written_next] = piece_of(&wqe->sges[at]);
        written[written_next].moment = shadow_moment();
        written_next = (written_next + 1) % WRITTEN;
    }
}

static bool was_written(const struct piece *piece, uint64_t since)
{
    bool forgotten = written[written_next].moment > since;
    for (unsigned at = 0; at < WRITTEN && !forgotten; at++)
        if (written[at].moment > since && is_common(&written[at], piece))
            return true;
    return forgotten;
}

static bool is_target(const struct wqe_queue *queue, const struct piece *piece, const struct wqe *except)
{
    for (uint32_t at = 0; at < queue->count; at++) {
        const struct wqe *wqe = wqe_at(queue, at);
        if (!may_use(wqe, piece->begin, piece->end))
            continue;
        for (unsigned i = 0; wqe->flags & WQE_WRITES && wqe->begun != except->begun && i < wqe->count; i++) {
            struct piece target = piece_of(&wqe->sges[i]);
            if (is_common(&target, piece))
                return true;
        }
    }
    return false;
}

/* Returns true if work in flight of any queue may write these bytes: its completion is not polled yet. */
static bool is_any_target(const struct piece *piece, const struct wqe *except)
{
    const struct shadow *shadow;
    TAILQ_FOREACH (shadow, shadow_all(), siblings) {
        if (shadow->kind == SHADOW_SRQ && is_target(&shadow->srq.receives, piece, except))
            return true;
        if (shadow->kind == SHADOW_QP &&
            (is_target(&shadow->qp.receives, piece, except) || is_target(&shadow->qp.sends, piece, except)))
            return true;
    }
    return false;
}

bool memory_may_be_written(const struct wqe *wqe)
{
    shadow_assert_locked();
    for (unsigned at = 0; at < wqe->count; at++) {
        struct piece piece = piece_of(&wqe->sges[at]);
        if (was_written(&piece, wqe->begun) || is_any_target(&piece, wqe))
            return true;
    }
    return false;
}

static bool overlaps(const struct wqe *one, const struct wqe *other)
{
    for (unsigned at = 0; at < one->count; at++)
        for (unsigned i = 0; i < other->count; i++) {
            struct piece piece = piece_of(&one->sges[at]), beside = piece_of(&other->sges[i]);
            if (is_common(&piece, &beside))
                return true;
        }
    return false;
}

/* Finds a conflict. READs and atomics among the first `fenced` have ended before this work begins. */
static const struct wqe *find_conflict(const struct wqe_queue *queue, uint32_t fenced, const struct wqe *wqe)
{
    for (uint32_t at = 0; at < queue->count; at++) {
        const struct wqe *other = wqe_at(queue, at);
        if (!may_use(other, wqe->lowest, wqe->end) || (at < fenced && other->flags & WQE_WRITES))
            continue;
        if ((wqe->flags | other->flags) & WQE_WRITES && !(other->flags & (WQE_INLINE | WQE_UNSURE)) &&
            overlaps(wqe, other))
            return other;
    }
    return NULL;
}

/* Returns how many sends are before the last fence that this send waits for: its own, or a fence of earlier work. */
static uint32_t count_fenced(const struct wqe_queue *sends, const struct wqe *send)
{
    uint32_t count = sends->count;
    while (!(send->flags & WQE_FENCE) && count > 0 && !(wqe_at(sends, count - 1)->flags & WQE_FENCE))
        count--;
    return count;
}

static const struct wqe *find_conflict_of(const struct shadow *shadow, const struct shadow *owner,
                                          const struct wqe *wqe)
{
    if (shadow->kind == SHADOW_SRQ)
        return find_conflict(&shadow->srq.receives, 0, wqe);
    if (shadow->kind != SHADOW_QP)
        return NULL;
    bool is_own = shadow == owner && !(wqe->flags & WQE_RECEIVE);
    const struct wqe *found = find_conflict(&shadow->qp.receives, 0, wqe);
    return found ? found : find_conflict(&shadow->qp.sends, is_own ? count_fenced(&shadow->qp.sends, wqe) : 0, wqe);
}

const struct wqe *memory_find_conflict(const struct shadow *owner, const struct wqe *wqe)
{
    shadow_assert_locked();
    const struct wqe *found = NULL;
    const struct shadow *shadow;
    TAILQ_FOREACH (shadow, shadow_all(), siblings) {
        found = find_conflict_of(shadow, owner, wqe);
        if (found)
            break;
    }
    return found;
}

static bool uses_piece(const struct wqe *wqe, const struct piece *piece)
{
    for (unsigned at = 0; at < wqe->count; at++) {
        struct piece own = piece_of(&wqe->sges[at]);
        if (own.begin && is_common(&own, piece))
            return true;
    }
    return false;
}

/* Finds work that uses the piece and was posted before its `moment`. */
static const struct wqe *find_user(const struct wqe_queue *queue, const struct piece *piece)
{
    for (uint32_t at = 0; at < queue->count; at++) {
        const struct wqe *wqe = wqe_at(queue, at);
        if (may_use(wqe, piece->begin, piece->end) && wqe->flags & WQE_SIGNALED && wqe->begun < piece->moment &&
            !(wqe->flags & (WQE_INLINE | WQE_UNSURE)) && uses_piece(wqe, piece))
            return wqe;
    }
    return NULL;
}

/* Queue pairs that have failed flush their work without touching memory. */
static const struct wqe *find_user_of(const struct shadow *owner, const struct piece *piece)
{
    if (owner->kind == SHADOW_SRQ)
        return find_user(&owner->srq.receives, piece);
    if (owner->kind != SHADOW_QP || owner->qp.state == IBV_QPS_ERR || owner->qp.state == IBV_QPS_SQE)
        return NULL;
    const struct wqe *wqe = find_user(&owner->qp.sends, piece);
    return wqe ? wqe : find_user(&owner->qp.receives, piece);
}

/* Leaves out the parent's objects: the child of a fork frees and unmaps copies of its parent's memory. */
static bool is_own(const struct shadow *shadow)
{
    return !shadow_is_child || shadow->process == getpid();
}

const struct wqe *memory_find_user(const struct memory_loss *loss, struct shadow **owner)
{
    shadow_assert_locked();
    const struct piece piece = {.begin = loss->begin, .end = loss->begin + loss->length, .moment = loss->before};
    const struct wqe *found = NULL;
    struct shadow *shadow;
    TAILQ_FOREACH (shadow, shadow_all(), siblings) {
        found = is_own(shadow) ? find_user_of(shadow, &piece) : NULL;
        if (found)
            break;
    }
    *owner = shadow;
    return found;
}

/* -- regions */

static bool is_pinned(const struct shadow *shadow)
{
    return shadow->kind == SHADOW_MR && shadow->mr.address && !(shadow->mr.access & IBV_ACCESS_ON_DEMAND) &&
           is_own(shadow);
}

/* The offset of the byte at this address in the file of the mapping. */
static uint64_t offset_of(const struct vma *mapping, const char *address)
{
    return mapping->offset + ((uintptr_t)address - mapping->begin);
}

static bool loses_of_file(const struct shadow_mr *mr, const struct memory_loss *loss)
{
    const struct vma *mapping = &mr->mapping;
    uint64_t first = offset_of(mapping, mr->address);
    return mapping->shared && mapping->inode == loss->file.inode && mapping->device == loss->file.device &&
           first < loss->file_end && loss->file.offset < first + mr->length;
}

static bool loses(const struct shadow_mr *mr, const struct memory_loss *loss)
{
    const char *end = mr->address + mr->length, *last = loss->begin + loss->length;
    if (loss->file.inode)
        return loses_of_file(mr, loss);
    if (loss->kind == MEMORY_FREED)
        return mr->address >= loss->begin && end <= last && mr->length;
    return mr->address < last && loss->begin < end;
}

struct shadow *memory_find_region(const struct memory_loss *loss, uint64_t after)
{
    shadow_assert_locked();
    struct shadow *shadow;
    TAILQ_FOREACH (shadow, shadow_all(), siblings)
        if (shadow->serial > after && is_pinned(shadow) && shadow->mr.since < loss->before && loses(&shadow->mr, loss))
            break;
    return shadow;
}

bool memory_is_shared(const struct memory_loss *loss)
{
    const struct shadow *mr = memory_find_region(loss, 0);
    return mr && mr->mr.mapping.shared;
}

bool memory_is_of_file(const struct memory_loss *loss, uint64_t inode, uint64_t offset)
{
    const struct shadow *mr = memory_find_region(loss, 0);
    const struct vma *mapping = mr && mr->mr.mapping.shared ? &mr->mr.mapping : NULL;
    return mapping && mapping->inode == inode && offset_of(mapping, loss->begin) == offset;
}

size_t memory_attached(const char *begin)
{
    shadow_assert_locked();
    const struct shadow *shadow;
    TAILQ_FOREACH (shadow, shadow_all(), siblings)
        if (is_pinned(shadow) && shadow->mr.mapping.shared && shadow->mr.mapping.begin == (uintptr_t)begin)
            return shadow->mr.mapping.end - shadow->mr.mapping.begin;
    return 0;
}
