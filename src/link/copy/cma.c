#include "link/copy/cma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include "base/settings.h"
#include "base/static_lock.h"
#include "wire/guarded.h"

enum { TO_MAX = 4 * PAYLOAD_PIECES_MAX };

static size_t total(const struct iovec *pieces, uint32_t count)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += pieces[i].iov_len;
    return sum;
}

/* Cuts the part of the payload out that starts at `offset` and is `length` long. Returns how many pieces it has. */
static uint32_t cut(const struct payload *payload, uint32_t offset, size_t length, struct iovec *part)
{
    uint32_t pieces = 0;
    for (uint32_t i = 0; i < payload->count && length; i++) {
        size_t here = payload->pieces[i].iov_len;
        if (offset >= here) {
            offset -= (uint32_t)here;
            continue;
        }
        here -= offset;
        if (here > length)
            here = length;
        part[pieces++] = (struct iovec){(uint8_t *)payload->pieces[i].iov_base + offset, here};
        length -= here;
        offset = 0;
    }
    return pieces;
}

bool cma_remote(const struct cma_proof *proof, const struct payload *payload, uint32_t offset, const struct iovec *to,
                uint32_t count)
{
    struct iovec remote[PAYLOAD_PIECES_MAX + 1], local[TO_MAX + 1];
    uint64_t value = 0;
    size_t length = total(to, count);
    if (count > TO_MAX || offset > payload->length || length > payload->length - offset)
        return false;
    uint32_t pieces = cut(payload, offset, length, remote);
    if (count)
        memcpy(local, to, count * sizeof *to);
    remote[pieces] = (struct iovec){(void *)(uintptr_t)proof->address, sizeof value};
    local[count] = (struct iovec){&value, sizeof value};
    ssize_t got = process_vm_readv(proof->pid, local, count + 1, remote, pieces + 1, 0);
    if (got >= 0 && (size_t)got < length + sizeof value) /* so the kernel reports a bad page after the first one */
        errno = EFAULT;
    return got >= 0 && (size_t)got == length + sizeof value && value == proof->value;
}

/* Returns true if SOFTVERBS_NO_PULL is 1: no process touches another's memory. */
static bool cma_is_off(void)
{
    const char *value = setting_environment(SETTING_NO_PULL);
    return value && !strcmp(value, "1");
}

bool cma_is_direct(void)
{
    const char *value = setting_environment(SETTING_DIRECT), *adverse = setting_environment(SETTING_ADVERSE);
    return !(value && !strcmp(value, "0")) && !(adverse && *adverse) && !cma_is_off();
}

LOCK_STATIC(permitting, LOCK_INNERMOST);
static unsigned permits; /* calls of cma_permit that returned true, minus calls of cma_withdraw */

/* Sets who may trace this process. EINVAL: the kernel has no Yama, and the call is not needed. */
static void set_tracer(unsigned long who)
{
    int saved = errno; /* a post may be the first to need it, and a post that succeeds changes no errno */
    prctl(PR_SET_PTRACER, who, 0, 0, 0);
    errno = saved;
}

/* A program that has more rights than its user opens nothing to the user's other processes. */
bool cma_permit(void)
{
    if (cma_is_off() || getauxval(AT_SECURE))
        return false;
    lock_take(&permitting);
    if (!permits++)
        set_tracer(PR_SET_PTRACER_ANY);
    lock_release(&permitting);
    return true;
}

void cma_withdraw(void)
{
    lock_take(&permitting);
    if (!--permits)
        set_tracer(0);
    lock_release(&permitting);
}

bool cma_works(const struct cma_proof *proof)
{
    if (cma_is_off() || proof->pid <= 0)
        return false;
    return cma_remote(proof, &(struct payload){0}, 0, NULL, 0);
}

bool cma_local(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    struct iovec from[PAYLOAD_PIECES_MAX];
    size_t length = total(to, count), done = 0;
    if (offset > payload->length || length > payload->length - offset)
        return false;
    uint32_t pieces = cut(payload, offset, length, from);
    for (uint32_t i = 0; i < count; i++)
        for (size_t filled = 0; filled < to[i].iov_len;) {
            if (!pieces)
                return false;
            size_t here = from[0].iov_len - done, room = to[i].iov_len - filled;
            here = here < room ? here : room;
            if (!guarded_copy((uint8_t *)to[i].iov_base + filled, (uint8_t *)from[0].iov_base + done, here))
                return false;
            filled += here;
            done += here;
            if (done == from[0].iov_len) {
                memmove(from, from + 1, --pieces * sizeof *from);
                done = 0;
            }
        }
    return true;
}
