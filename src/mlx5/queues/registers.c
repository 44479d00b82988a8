#include "mlx5/queues/registers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/mapping.h"
#include "base/settings.h"
#include "diag/log.h"
#include "ipc/node.h"
#include "link/fence.h"
#include "link/guard.h"
#include "mlx5/queues/blocked.h"

enum { PAGES = 32, OF_COMPLETIONS = PAGES / 2, LENGTH = PAGES * REGISTERS_PAGE };

enum way { BY_FAULTS, BY_SIGNAL, BY_NOTHING };

static char *_Atomic pages;
static enum way way;
static int faults = -1; /* of userfaultfd */
static atomic_bool closed;
static atomic_bool stored;         /* a store has found them closed, by signal */
static struct node *_Atomic woken; /* whose helper a store wakes; NULL: the registers are open */

/* --- userfaultfd */

static bool watch_faults(int descriptor, void *at)
{
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    struct uffdio_register range = {.range = {(uintptr_t)at, LENGTH}, .mode = UFFDIO_REGISTER_MODE_WP};
    return !ioctl(descriptor, UFFDIO_API, &api) && !ioctl(descriptor, UFFDIO_REGISTER, &range) &&
           range.ioctls & (uint64_t)1 << _UFFDIO_WRITEPROTECT;
}

/* The pages must be there, as only a page that is there can be closed. */
static bool begin_faults(void *at)
{
    memset(at, 0, LENGTH);
    int descriptor = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (descriptor < 0)
        return false;
    descriptor = descriptor_raise(descriptor);
    if (watch_faults(descriptor, at)) {
        faults = descriptor;
        return true;
    }
    close(descriptor);
    return false;
}

/* Opening wakes the threads whose stores wait. */
static bool protect_by_faults(bool close_them)
{
    struct uffdio_writeprotect range = {.range = {(uintptr_t)atomic_load(&pages), LENGTH},
                                        .mode = close_them ? UFFDIO_WRITEPROTECT_MODE_WP : 0};
    return !ioctl(faults, UFFDIO_WRITEPROTECT, &range);
}

/* Takes the notices of stores, which the opening has woken. Returns true if there was one. */
static bool take_faults(void)
{
    struct uffd_msg message;
    bool taken = false;
    while (read(faults, &message, sizeof message) == sizeof message)
        taken = true;
    return taken;
}

/* --- signals */

/* The bare system call, as in the signal's handler no interceptor of a sanitizer may run. */
static bool protect_by_signal(bool close_them)
{
    return !syscall(SYS_mprotect, atomic_load(&pages), (size_t)LENGTH, PROT_READ | (close_them ? 0 : PROT_WRITE));
}

/* Opens all pages, so that the store is executed again and succeeds, and wakes the helper after that. In the signal's
 * handler. */
static bool open_at(const void *at, const void *instruction)
{
    uintptr_t begin = (uintptr_t)atomic_load(&pages);
    int saved = errno;
    if (!instruction || !begin || (uintptr_t)at - begin >= LENGTH)
        return false;
    atomic_store(&stored, true);
    bool opened = protect_by_signal(false);
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

static bool begin_signal(void)
{
    static const struct guard_protector protector = {open_at, end_at};
    guard_protect_by(&protector);
    return true;
}

/* --- both */

static bool may_be(const char *setting, const char *word)
{
    return !setting || !strcmp(setting, "auto") || !strcmp(setting, word);
}

static enum way choose_way(void *at)
{
    const char *setting = setting_environment(SETTING_DOORBELLS);
    if (may_be(setting, "faults") && begin_faults(at))
        return BY_FAULTS;
    if (may_be(setting, "signal")) {
        begin_signal();
        return BY_SIGNAL;
    }
    log_reason(LOG_WARN, REASON_REGISTERS_POLLED, "SOFTVERBS_DOORBELLS is %s", setting);
    return BY_NOTHING;
}

bool registers_make(void)
{
    if (atomic_load(&pages))
        return true;
    char *made = mapping_make(LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        return false;
    way = choose_way(made);
    atomic_store(&pages, made);
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

static bool protect(bool close_them)
{
    return way == BY_FAULTS ? protect_by_faults(close_them) : protect_by_signal(close_them);
}

/* Says once why the helper does not sleep. */
static bool tell_polling(const char *why)
{
    static bool told;
    if (!told)
        log_reason(LOG_WARN, REASON_REGISTERS_POLLED, "%s", why);
    told = true;
    return false;
}

static bool may_close(void)
{
    if (way != BY_SIGNAL)
        return way == BY_FAULTS;
    guard_start(); /* the program may have taken the signal since */
    return !blocked_by_a_thread() || tell_polling("no userfaultfd is in use, and a thread blocks SIGSEGV");
}

bool registers_close(struct node *node)
{
    if (!may_close())
        return false;
    atomic_store(&woken, node);
    atomic_store(&closed, true);
    bool shut = protect(true);
    if (!shut) {
        atomic_store(&closed, false);
        way = way == BY_FAULTS && begin_signal() ? BY_SIGNAL : BY_NOTHING; /* the program has closed the descriptor */
    }
    fence_everywhere();
    return shut;
}

/* True, too, where nothing can close them. */
bool registers_open(void)
{
    bool were_closed = atomic_exchange(&closed, false), opened = were_closed && protect(false);
    bool found_closed = way == BY_FAULTS ? opened && take_faults() : atomic_exchange(&stored, false) || !were_closed;
    atomic_store(&woken, NULL);
    return found_closed;
}

int registers_descriptor(void)
{
    return way == BY_FAULTS ? faults : -1;
}

void registers_inherit(void)
{
    if (atomic_load(&pages) && way == BY_SIGNAL && atomic_load(&closed))
        protect(false);
    atomic_store(&closed, false);
    atomic_store(&woken, NULL);
    descriptor_close(&faults); /* a call on it would open the registers of the parent */
    atomic_store(&pages, NULL);
}
