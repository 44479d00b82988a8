#include "check/memory.h"

#include <string.h>

#include "check/findings/finding.h"
#include "check/shadow.h"
#include "link/guard.h"

enum { WHOLE = 4096, LINE = 64, LINES = 64, CHUNK = 512 };

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

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 32;
}

/* Four at a time, since one multiplication need not wait for the other three. */
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

/* The memory may be gone, so it is copied with the guard around it. */
static bool hash_bytes(uint64_t *hash, const char *from, size_t length)
{
    uint64_t words[CHUNK / sizeof(uint64_t)];
    for (size_t done = 0; done < length;) {
        size_t some = length - done < CHUNK ? length - done : CHUNK, count = (some + 7) / 8;
        words[count - 1] = 0;
        if (!guard_copy(words, from + done, some))
            return false;
        *hash = hash_words(*hash, words, count);
        done += some;
    }
    return true;
}

/* Its first and last bytes, and what lies evenly between. */
static bool hash_sample(uint64_t *hash, const char *from, size_t length)
{
    size_t step = (length - LINE) / (LINES - 1);
    for (size_t line = 0; line < LINES - 1; line++)
        if (!hash_bytes(hash, from + line * step, LINE))
            return false;
    return hash_bytes(hash, from + length - LINE, LINE);
}

bool memory_hash(const struct wqe *wqe, uint64_t *hash)
{
    shadow_assert_locked();
    *hash = 0;
    for (unsigned at = 0; at < wqe->count; at++) {
        const struct ibv_sge *sge = &wqe->sges[at];
        const char *from = sge->length ? memory_at(sge) : "";
        bool whole = sge->length <= WHOLE || finding_choice.full;
        if (!from || !(whole ? hash_bytes : hash_sample)(hash, from, sge->length))
            return false;
    }
    return true;
}

static bool touches(const struct ibv_sge *one, const struct ibv_sge *other)
{
    const char *first = memory_at(one), *second = memory_at(other);
    if (!one->length || !other->length || !first || !second)
        return false;
    return first < second + other->length && second < first + one->length;
}

bool memory_overlaps(const struct wqe *one, const struct wqe *other)
{
    for (unsigned i = 0; i < one->count; i++)
        for (unsigned j = 0; j < other->count; j++)
            if (touches(&one->sges[i], &other->sges[j]))
                return true;
    return false;
}
