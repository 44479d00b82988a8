#include "link/direct.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/uncancelled.h"
#include "link/fence.h"
#include "wire/payload.h"

enum { DIRECT_TICKET = 4 }; /* bytes */

/* Any that is free; DIRECT_SEATS: none is. */
static unsigned direct_engage(struct direct_desk *desk)
{
    unsigned seat = 0;
    while (seat < DIRECT_SEATS && atomic_exchange(&desk->engaged[seat], true))
        seat++;
    return seat;
}

/* The kernel may store the bytes of a piece in any order, but those of one piece before those of the next. Programs
 * wait for the last byte, and it lands with the bytes of its aligned word after all others (docs/user/choices.md): so
 * that word is a piece of its own. Cuts the last piece of a READ's destination, behind which there is room for one
 * more; returns how many pieces there are. */
static unsigned direct_split(struct iovec *pieces, unsigned count)
{
    struct iovec *end = &pieces[count - 1];
    unsigned last = payload_last_word((uintptr_t)end->iov_base + end->iov_len, end->iov_len);
    if (end->iov_len <= last)
        return count;
    end->iov_len -= last;
    pieces[count] = (struct iovec){(uint8_t *)end->iov_base + end->iov_len, last};
    return count + 1;
}

static ssize_t direct_read(pid_t pid, const struct direct_access *access, uint64_t memory)
{
    struct iovec remote = {(void *)(uintptr_t)memory, access->question.length}, local[PAYLOAD_PIECES_MAX + 1];
    memcpy(local, access->pieces, access->count * sizeof *local);
    return process_vm_readv(pid, local, direct_split(local, access->count), &remote, 1, 0);
}

static uint64_t direct_length(const struct direct_access *access)
{
    uint64_t length = access->question.length;
    for (uint32_t i = 0; i < access->more_count; i++)
        length += access->more[i].length;
    return length;
}

static enum direct_outcome direct_outcome_of(const struct direct_access *access, ssize_t done)
{
    if (done == (ssize_t)direct_length(access))
        return DIRECT_DONE;
    return done < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES) ? DIRECT_REFUSED : DIRECT_DECLINED;
}

/* One call of process_vm_writev. The kernel looks at a place there once for each piece of the destination, and stores
 * each piece of the source apart: so it is the source that is cut before the last word. */
struct direct_call {
    struct iovec local[1 + PAYLOAD_PIECES_MAX + 2 * (1 + DIRECT_MORE)], remote[1 + 1 + DIRECT_MORE];
    unsigned local_count, remote_count;
    const struct iovec *piece; /* of the access, the next; */
    size_t taken;              /* bytes of it that are among `local` */
};

/* The first piece. Its value means nothing. */
static void direct_add_ticket(struct direct_call *call, uint64_t ticket)
{
    static const uint8_t value[DIRECT_TICKET];
    call->local[call->local_count++] = (struct iovec){(void *)value, DIRECT_TICKET};
    call->remote[call->remote_count++] = (struct iovec){(void *)(uintptr_t)ticket, DIRECT_TICKET};
}

/* The next bytes of the access's memory. */
static void direct_add_local(struct direct_call *call, size_t length)
{
    while (length) {
        size_t here = call->piece->iov_len - call->taken, part = here < length ? here : length;
        if (part)
            call->local[call->local_count++] = (struct iovec){(uint8_t *)call->piece->iov_base + call->taken, part};
        length -= part;
        call->taken += part;
        if (part == here) {
            call->piece++;
            call->taken = 0;
        }
    }
}

static void direct_add_write(struct direct_call *call, uint64_t memory, uint32_t length)
{
    unsigned last = payload_last_word((uintptr_t)memory + length, length);
    call->remote[call->remote_count++] = (struct iovec){(void *)(uintptr_t)memory, length};
    direct_add_local(call, length - last);
    direct_add_local(call, last);
}

static ssize_t direct_write(pid_t pid, const struct direct_call *call)
{
    ssize_t done = process_vm_writev(pid, call->local, call->local_count, call->remote, call->remote_count, 0);
    return done > 0 ? done - DIRECT_TICKET : done;
}

static enum direct_outcome direct_do_announced(const struct direct_desk *desk, const struct direct_seats *seats,
                                               const struct published *published, pid_t pid,
                                               const struct direct_access *access)
{
    struct direct_call call;
    uint64_t memory, ticket = atomic_load(&seats->ticket);
    if (!ticket || atomic_load(&desk->closed) || access->more_count > DIRECT_MORE)
        return DIRECT_DECLINED;
    call.local_count = call.remote_count = 0;
    call.piece = access->pieces;
    call.taken = 0;
    direct_add_ticket(&call, ticket);
    for (uint32_t i = 0; i <= access->more_count; i++) {
        const struct published_question *question = i ? &access->more[i - 1] : &access->question;
        if (!published_permits(published, question, &memory))
            return DIRECT_DECLINED;
        direct_add_write(&call, memory, question->length);
    }
    return direct_outcome_of(access, direct_write(pid, &call));
}

static enum direct_outcome direct_do_write(const struct direct_desk *desk, struct direct_seats *seats, unsigned seat,
                                           const struct published *published, pid_t pid,
                                           const struct direct_access *access)
{
    uint32_t number = atomic_load_explicit(&seats->taken[seat], memory_order_relaxed) | 1;
    atomic_exchange(&seats->taken[seat], number); /* sequentially consistent: before all of what judges */
    enum direct_outcome outcome = direct_do_announced(desk, seats, published, pid, access);
    atomic_store_explicit(&seats->taken[seat], number + 1, memory_order_release);
    return outcome;
}

/* The owner has not taken the key away before the last byte was read if it stands there afterwards; and it lives, so
 * its number was its own all the time. */
static enum direct_outcome direct_do_read(const struct direct_desk *desk, const struct published *published, pid_t pid,
                                          const struct direct_access *access)
{
    uint64_t memory, again;
    if (atomic_load(&desk->closed) || !published_permits(published, &access->question, &memory))
        return DIRECT_DECLINED;
    enum direct_outcome outcome = direct_outcome_of(access, direct_read(pid, access, memory));
    fence_full();
    bool holds = outcome != DIRECT_DONE || (published_permits(published, &access->question, &again) && again == memory);
    return holds ? outcome : DIRECT_DECLINED;
}

static void direct_count(struct direct_seats *seats, const struct direct_access *access)
{
    atomic_fetch_add_explicit(access->question.write ? &seats->writes : &seats->reads, 1 + access->more_count,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&seats->bytes, direct_length(access), memory_order_relaxed);
}

enum direct_outcome direct_do(struct direct_desk *desk, struct direct_seats *seats, const struct published *published,
                              pid_t pid, const struct direct_access *access)
{
    unsigned seat = direct_engage(desk);
    if (seat == DIRECT_SEATS)
        return DIRECT_DECLINED;
    int kept = errno;
    enum direct_outcome outcome = access->question.write ? direct_do_write(desk, seats, seat, published, pid, access)
                                                         : direct_do_read(desk, published, pid, access);
    errno = kept;
    atomic_store_explicit(&desk->engaged[seat], false, memory_order_release);
    if (outcome == DIRECT_DONE)
        direct_count(seats, access);
    return outcome;
}

static bool direct_is_engaged(const struct direct_desk *desk)
{
    for (unsigned i = 0; i < DIRECT_SEATS; i++)
        if (atomic_load(&desk->engaged[i]))
            return true;
    return false;
}

/* A thread that engages a seat later finds the desk closed. */
void direct_close(struct direct_desk *desk)
{
    enum { NAP = 100000, NAPS = 5000 };
    atomic_exchange(&desk->closed, true);
    int before = uncancelled_begin();
    for (int i = 0; i < NAPS && direct_is_engaged(desk); i++)
        nanosleep(&(struct timespec){.tv_nsec = NAP}, NULL);
    uncancelled_end(before);
}

void direct_look(const struct direct_seats *seats, uint32_t seen[DIRECT_SEATS])
{
    for (unsigned i = 0; i < DIRECT_SEATS; i++)
        seen[i] = atomic_load(&seats->taken[i]);
}

bool direct_is_under_way(const struct direct_seats *seats, const uint32_t seen[DIRECT_SEATS])
{
    for (unsigned i = 0; i < DIRECT_SEATS; i++)
        if (seen[i] % 2 && atomic_load_explicit(&seats->taken[i], memory_order_acquire) == seen[i])
            return true;
    return false;
}
