#include "mlx5/queues/registers.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mapping.h"
#include "ipc/node.h"
#include "link/fence.h"
#include "link/guard.h"

enum { PAGES = 256, OF_COMPLETIONS = PAGES / 2, LENGTH = PAGES * REGISTERS_PAGE };

static char *_Atomic pages;
static atomic_bool closed;
static struct node *_Atomic woken; /* whose helper a store wakes; NULL: the registers are open */

/* The bare system call, as in the signal's handler no interceptor of a sanitizer may run. */
static bool protect(int protection)
{
    return !syscall(SYS_mprotect, atomic_load(&pages), (size_t)LENGTH, protection);
}

/* Opens all pages, so that the store is executed again and succeeds, and wakes the helper after that. In the signal's
 * handler. */
static bool open_at(const void *at, const void *instruction)
{
    uintptr_t begin = (uintptr_t)atomic_load(&pages);
    int saved = errno;
    if (!instruction || (uintptr_t)at - begin >= LENGTH)
        return false;
    bool opened = protect(PROT_READ | PROT_WRITE);
    atomic_store(&closed, false);
    struct node *node = atomic_load(&woken);
    if (node)
        node_wake(node);
    errno = saved;
    return opened;
}

/* Registers can be read while they are closed. */
static uintptr_t end_at(uintptr_t at)
{
    return 0;
}

bool registers_make(void)
{
    static const struct guard_protector protector = {open_at, end_at};
    if (atomic_load(&pages))
        return true;
    char *made = mapping_make(LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED)
        return false;
    atomic_store(&pages, made);
    guard_protect_by(&protector);
    return true;
}

char *registers_of_queue_pair(uint32_t number)
{
    return atomic_load(&pages) + number % OF_COMPLETIONS * REGISTERS_PAGE;
}

char *registers_of_completions(uint32_t number)
{
    return atomic_load(&pages) + (OF_COMPLETIONS + number % OF_COMPLETIONS) * REGISTERS_PAGE;
}

bool registers_close(struct node *node)
{
    guard_start(); /* the program may have taken the signal since */
    atomic_store(&woken, node);
    atomic_store(&closed, true);
    if (!protect(PROT_READ))
        return false;
    fence_everywhere();
    return true;
}

void registers_open(void)
{
    if (atomic_exchange(&closed, false))
        protect(PROT_READ | PROT_WRITE);
    atomic_store(&woken, NULL);
}

void registers_inherit(void)
{
    if (atomic_load(&pages))
        registers_open();
}
