#include "link/direct.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "base/likely.h"
#include "base/uncancelled.h"
#include "link/copy/process_copy.h"
#include "link/fence.h"
#include "wire/payload.h"

/* Takes a free seat; DIRECT_SEATS: all are taken. */
static unsigned direct_engage(struct direct_desk *desk)
{
    unsigned seat = 0;
    while (seat < DIRECT_SEATS && atomic_exchange(&desk->engaged[seat], true))
        seat++;
    return seat;
}

/* The kernel may store the bytes of a piece in any order, but the bytes of one piece before the bytes of the next.
 * Programs wait for the last byte, and it lands with the bytes of its aligned word after all others
 * (docs/reference/choices.md): so that word is a separate piece. Cuts the last piece of a READ's destination into
 * two, for which `pieces` has room; returns the new count. */
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

static long direct_read(pid_t pid, const struct direct_access *access, uint64_t memory)
{
    struct iovec remote = {(void *)(uintptr_t)memory, access->question.length}, local[PAYLOAD_PIECES_MAX + 1];
    local[0] = access->pieces[0];
    if (unlikely(access->count > 1))
        memcpy(local + 1, access->pieces + 1, (access->count - 1) * sizeof *local);
    return process_copy(SYS_process_vm_readv, pid, local, direct_split(local, access->count), &remote, 1);
}

static uint64_t direct_length(const struct direct_access *access)
{
    uint64_t length = access->question.length;
    for (uint32_t i = 0; i < access->more_count; i++)
        length += access->more[i].length;
    return length;
}

static enum direct_outcome direct_outcome_of(const struct direct_access *access, long done)
{
    if (likely(done == (long)direct_length(access)))
        return DIRECT_DONE;
    return done == -EPERM || done == -ENOSYS || done == -EACCES ? DIRECT_REFUSED : DIRECT_DECLINED;
}

/* A call of process_vm_writev. The kernel looks up the target's process once for each target, and stores each piece
 * of the source separately: so the source is cut before the last word. */
struct direct_call {
    struct iovec local[PAYLOAD_PIECES_MAX + 2 * (1 + DIRECT_MORE)];
    unsigned local_count;
    uint64_t memory[1 + DIRECT_MORE]; /* the addresses that are judged */
    struct direct_target *targets;    /* the same addresses, where the owner can change them */
    const struct iovec *piece;        /* the next of the access's pieces; */
    size_t taken;                     /* bytes of that piece that are in `local` */
};

_Static_assert(!DIRECT_IN_ORDER || (sizeof(struct direct_target) == sizeof(struct iovec) &&
                                    offsetof(struct direct_target, length) == offsetof(struct iovec, iov_len)),
               "the kernel reads targets as struct iovec");

static const struct published_question *direct_question(const struct direct_access *access, uint32_t number)
{
    return number ? &access->more[number - 1] : &access->question;
}

/* Adds the next bytes of the access's memory to `local`. */
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

static void direct_add_write(struct direct_call *call, uint32_t number, uint32_t length)
{
    uint64_t memory = call->memory[number];
    unsigned last = payload_last_word((uintptr_t)memory + length, length);
    atomic_store_explicit(&call->targets[number].address, memory, memory_order_relaxed);
    call->targets[number].length = length;
    direct_add_local(call, length - last);
    direct_add_local(call, last);
}

/* Writes the targets before the access is announced, as they may not be written later; direct_holds judges them. */
static bool direct_aim(struct direct_call *call, struct direct_target *targets, const struct published *published,
                       const struct direct_access *access)
{
    call->local_count = 0;
    call->targets = targets;
    call->piece = access->pieces;
    call->taken = 0;
    for (uint32_t i = 0; i <= access->more_count; i++) {
        if (!published_place(published, direct_question(access, i), &call->memory[i]))
            return false;
        direct_add_write(call, i, direct_question(access, i)->length);
    }
    return true;
}

/* Returns true if the announced access is allowed at its targets. */
static bool direct_holds(const struct direct_call *call, const struct published *published,
                         const struct direct_access *access)
{
    uint64_t memory;
    for (uint32_t i = 0; i <= access->more_count; i++)
        if (!published_permits(published, direct_question(access, i), &memory) || memory != call->memory[i])
            return false;
    return true;
}

static enum direct_outcome direct_do_announced(const struct direct_desk *desk, const struct direct_seat *seat,
                                               const struct direct_call *call, const struct published *published,
                                               pid_t pid, const struct direct_access *access)
{
    if (atomic_load(&desk->closed) || atomic_load(&seat->shut) || !direct_holds(call, published, access))
        return DIRECT_DECLINED;
    const struct iovec *remote = (const struct iovec *)(const void *)call->targets;
    long done =
        process_copy(SYS_process_vm_writev, pid, call->local, call->local_count, remote, 1 + access->more_count);
    return direct_outcome_of(access, done);
}

static enum direct_outcome direct_do_write(const struct direct_desk *desk, struct direct_seat *seat,
                                           const struct published *published, pid_t pid,
                                           const struct direct_access *access)
{
    struct direct_call call;
    if (access->more_count > DIRECT_MORE || !direct_aim(&call, seat->targets, published, access))
        return DIRECT_DECLINED;
    uint32_t number = atomic_load_explicit(&seat->taken, memory_order_relaxed) | 1;
    atomic_exchange(&seat->taken, number); /* sequentially consistent: before all of what judges */
    enum direct_outcome outcome = direct_do_announced(desk, seat, &call, published, pid, access);
    atomic_store_explicit(&seat->taken, number + 1, memory_order_release);
    return outcome;
}

/* A separate function, as a READ calls it before and after the system call, when the processor may still have the
 * code of the first call in its cache. A WRITE, which judges once, is faster with published_permits inlined. */
cold __attribute__((flatten)) static bool direct_may_read(const struct published *published,
                                                          const struct published_question *question, uint64_t *memory)
{
    return published_permits(published, question, memory);
}

/* If the key is still there after the last byte was read, the owner had not taken it away before; and the owner
 * lives, so its process ID was its own all the time. The processor loads in the program's order (DIRECT_IN_ORDER),
 * so only the compiler has to be kept from looking earlier. */
static enum direct_outcome direct_do_read(const struct direct_desk *desk, const struct published *published, pid_t pid,
                                          const struct direct_access *access)
{
    uint64_t memory, again;
    if (atomic_load(&desk->closed) || !direct_may_read(published, &access->question, &memory))
        return DIRECT_DECLINED;
    enum direct_outcome outcome = direct_outcome_of(access, direct_read(pid, access, memory));
    fence_compiler();
    bool holds = outcome != DIRECT_DONE || (direct_may_read(published, &access->question, &again) && again == memory);
    return holds ? outcome : DIRECT_DECLINED;
}

/* No other thread has the seat meanwhile, so no addition needs to be atomic. */
static void direct_count(struct direct_seat *seat, const struct direct_access *access)
{
    _Atomic uint64_t *works = access->question.write ? &seat->writes : &seat->reads;
    uint64_t count = atomic_load_explicit(works, memory_order_relaxed) + 1 + access->more_count;
    uint64_t bytes = atomic_load_explicit(&seat->bytes, memory_order_relaxed) + direct_length(access);
    atomic_store_explicit(works, count, memory_order_relaxed);
    atomic_store_explicit(&seat->bytes, bytes, memory_order_relaxed);
}

enum direct_outcome direct_do(struct direct_desk *desk, struct direct_seats *seats, const struct published *published,
                              pid_t pid, const struct direct_access *access)
{
    unsigned number = direct_engage(desk);
    if (number == DIRECT_SEATS)
        return DIRECT_DECLINED;
    struct direct_seat *seat = &seats->at[number];
    enum direct_outcome outcome = access->question.write ? direct_do_write(desk, seat, published, pid, access)
                                                         : direct_do_read(desk, published, pid, access);
    if (outcome == DIRECT_DONE)
        direct_count(seat, access);
    atomic_store_explicit(&desk->engaged[number], false, memory_order_release);
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
        seen[i] = atomic_load(&seats->at[i].taken);
}

bool direct_is_under_way(const struct direct_seats *seats, const uint32_t seen[DIRECT_SEATS])
{
    for (unsigned i = 0; i < DIRECT_SEATS; i++)
        if (seen[i] % 2 && atomic_load_explicit(&seats->at[i].taken, memory_order_acquire) == seen[i])
            return true;
    return false;
}

/* No address of a program has this bit. It is in the highest byte, so a kernel that reads the address while the bit is
 * set gets the old address or one that faults. */
#define DIRECT_NOWHERE (UINT64_C(1) << 63)

/* A call whose first target faults ends there, and writes nothing. The requester wrote the targets before the number
 * became odd, and writes them again only after it has changed. */
void direct_forbid(struct direct_seats *seats, const uint32_t seen[DIRECT_SEATS])
{
    for (unsigned i = 0; i < DIRECT_SEATS; i++)
        if (seen[i] % 2)
            atomic_fetch_or(&seats->at[i].targets[0].address, DIRECT_NOWHERE);
}

/* A Dekker pair: the requester announces and then loads `shut`, we set `shut` and then look for announcements. So the
 * requester finds the seat shut, or we find its announcement. */
void direct_shut(struct direct_seats *seats)
{
    uint32_t seen[DIRECT_SEATS];
    for (unsigned i = 0; i < DIRECT_SEATS; i++)
        atomic_exchange(&seats->at[i].shut, 1);
    direct_look(seats, seen);
    direct_forbid(seats, seen);
}
