/* Doorbell registers: pages that are closed and opened, and the handler of the faults there (link/guard.h). */
#include <errno.h>
#include <sys/mman.h>

#include "host.h"
#include "link/guard.h"
#include "schedule.h"
#include "seam.h"
#include "trace.h"

static const struct guard_protector *protector; /* of the code under test, which has one */
static bool waits;
static unsigned faults_most;
static size_t mapped; /* bytes of the registers, in each execution */

void host_protection_waits(bool does)
{
    waits = does;
}

void host_faults(unsigned most)
{
    faults_most = most;
}

void model_guard_start(void);
void model_guard_start(void)
{
}

void model_guard_protect_by(const struct guard_protector *);
void model_guard_protect_by(const struct guard_protector *by)
{
    protector = by;
}

/* A process's first memory that can be written is its registers. Other such memory is in the heap. */
void *host_map_writable(size_t size)
{
    if (memory_mappers(memory_registers()))
        return model_calloc(1, size);
    mapped = size;
    memory_map(memory_registers(), host_process());
    return memory_registers()->base;
}

/* Opening needs no other processor: one that still knows the page as closed asks the kernel, which knows better. */
int host_protect(const void *start, size_t length, int protection, const void *at)
{
    bool closes = !(protection & PROT_WRITE);
    if (start != memory_registers()->base || length != mapped)
        host_unknown("mprotect");
    schedule_step();
    schedule_flush();
    if (closes && host_refuses(HOST_NO_PROTECTION)) {
        trace_line(at, "mprotect: ENOMEM");
        return host_error(ENOMEM);
    }
    trace_line(at, "mprotect: the registers are %s", closes ? "closed" : "open");
    memory_close(closes);
    if (closes && waits)
        schedule_flush_region(memory_registers());
    schedule_saw(0);
    return 0;
}

/* The handler runs in the thread that has stored. The kernel has looked at the page when it calls the handler, which
 * may begin much later. */
void host_fault(volatile void *address, unsigned faults, const void *at)
{
    if (faults > faults_most)
        schedule_violation("a store faults again and again");
    if (!protector->open((const void *)(uintptr_t)address, at))
        schedule_violation("a store into a register ends the program");
}
