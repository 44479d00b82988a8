#include "clock.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include "answer.h"
#include "raw.h"
#include "signals.h"
#include "token.h"

enum {
    READ = 50,   /* ns that a look at the clock takes */
    READS = 256, /* in a row, after which a loop over the clock gives the token away */
    BOOT = 1000, /* seconds of CLOCK_MONOTONIC when the run begins */
    TICKS = 2,   /* of the time stamp counter in a nanosecond */
    VDSO_BYTES = 8192,
    VDSO_SYMBOLS = 64,
};
#define BIRTH 1767225600ull /* CLOCK_REALTIME then: 1 January 2026 */
#define SECOND 1000000000ull

/* --- reading */

static uint64_t began(clockid_t clock)
{
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
        return BIRTH * SECOND;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        return BOOT * SECOND;
    default: /* of processors' time: virtual time, too */
        return 0;
    }
}

uint64_t clock_from_absolute(clockid_t clock, const struct timespec *time)
{
    uint64_t at = clock_nanos(time), zero = began(clock);
    return at > zero ? at - zero : 0;
}

static void look(void)
{
    struct sim_thread *thread = token_thread();
    token_run->now += READ;
    if (++thread->clock_reads < READS)
        return;
    thread->clock_reads = 0;
    thread->call = TOKEN_CLOCK;
    token_spin();
}

/* A clock that the kernel does not have is refused as it does. */
static long tell(clockid_t clock, struct timespec *to)
{
    long error = began(clock) ? 0 : RAW(clock_gettime, clock, to);
    if (error)
        return error;
    uint64_t now = began(clock) + token_run->now;
    to->tv_sec = (time_t)(now / SECOND);
    to->tv_nsec = (long)(now % SECOND);
    return 0;
}

/* In the place of the vDSO's functions: signals are not blocked. */
static void look_outside(void)
{
    if (token_thread()->clock_reads + 1 < READS)
        return look();
    uint64_t before = signals_block();
    look();
    signals_restore(before);
}

int clock_read(clockid_t clock, struct timespec *to)
{
    if (!token_is_simulated() || token_context)
        return (int)RAW(clock_gettime, clock, to);
    look_outside();
    return (int)tell(clock, to);
}

int clock_read_time_of_day(struct timeval *to, void *zone)
{
    struct timespec now;
    clock_read(CLOCK_REALTIME, &now);
    if (to)
        *to = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t clock_read_seconds(time_t *to)
{
    struct timespec now;
    clock_read(CLOCK_REALTIME, &now);
    if (to)
        *to = now.tv_sec;
    return now.tv_sec;
}

/* --- the vDSO */

struct vdso {
    const char *strings;
    const Elf64_Sym *symbols;
    const uint32_t *hash;
    uintptr_t bias;
};

static void read_dynamic(struct vdso *vdso, const Elf64_Dyn *entry)
{
    for (; entry && entry->d_tag; entry++) {
        const void *at = (const void *)(vdso->bias + entry->d_un.d_ptr);
        if (entry->d_tag == DT_STRTAB)
            vdso->strings = at;
        if (entry->d_tag == DT_SYMTAB)
            vdso->symbols = at;
        if (entry->d_tag == DT_HASH)
            vdso->hash = at;
    }
}

static struct vdso find_vdso(const char *base)
{
    struct vdso vdso = {0};
    const Elf64_Ehdr *head = (const void *)base;
    const Elf64_Phdr *part = (const void *)(base + head->e_phoff);
    const Elf64_Dyn *dynamic = NULL;
    for (int i = 0; i < head->e_phnum; i++) {
        if (part[i].p_type == PT_LOAD)
            vdso.bias = (uintptr_t)base + part[i].p_offset - part[i].p_vaddr;
        if (part[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(base + part[i].p_offset);
    }
    read_dynamic(&vdso, dynamic);
    return vdso;
}

/* mov $to, %rax; jmp *%rax */
static void write_jump(uintptr_t at, const void *to)
{
    uint8_t code[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    memcpy(code + 2, &to, sizeof to);
    memcpy((void *)at, code, sizeof code);
}

static void replace_functions(const struct vdso *vdso)
{
    static const struct {
        const char *name;
        const void *by;
    } replaced[] = {{"__vdso_clock_gettime", (void *)clock_read},
                    {"__vdso_gettimeofday", (void *)clock_read_time_of_day},
                    {"__vdso_time", (void *)clock_read_seconds}};
    unsigned count = vdso->hash ? vdso->hash[1] : VDSO_SYMBOLS, done = 0, all = sizeof replaced / sizeof *replaced;
    for (unsigned i = 1; i < count && done < all; i++)
        for (unsigned k = 0; k < all; k++)
            if (vdso->symbols[i].st_value && !strcmp(vdso->strings + vdso->symbols[i].st_name, replaced[k].name)) {
                write_jump(vdso->bias + vdso->symbols[i].st_value, replaced[k].by);
                done++;
            }
}

/* Without a vDSO all read the clock by system calls. */
void clock_replace_vdso(void)
{
    char *base = (char *)getauxval(AT_SYSINFO_EHDR);
    if (!base)
        return;
    struct vdso vdso = find_vdso(base);
    if (!vdso.strings || !vdso.symbols || RAW(mprotect, base, VDSO_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC))
        return;
    replace_functions(&vdso);
    RAW(mprotect, base, VDSO_BYTES, PROT_READ | PROT_EXEC);
}

/* --- the time stamp counter: rdtsc is 0f 31, rdtscp 0f 01 f9 */

bool clock_answer_counter(void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint8_t *code = (const void *)registers[REG_RIP];
    bool with_processor = code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9;
    if (!with_processor && !(code[0] == 0x0f && code[1] == 0x31))
        return false;
    look();
    uint64_t ticks = (token_run->now + BOOT * SECOND) * TICKS;
    registers[REG_RAX] = (uint32_t)ticks;
    registers[REG_RDX] = (greg_t)(ticks >> 32);
    if (with_processor)
        registers[REG_RCX] = 0;
    registers[REG_RIP] += with_processor ? 3 : 2;
    return true;
}

/* --- calls */

long answer_clock_gettime(struct caught *call)
{
    look();
    return tell((clockid_t)call->argument[0], (void *)call->argument[1]);
}

long answer_gettimeofday(struct caught *call)
{
    struct timeval *to = (void *)call->argument[0];
    struct timespec now;
    look();
    tell(CLOCK_REALTIME, &now);
    if (to)
        *to = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

long answer_time(struct caught *call)
{
    time_t *to = (void *)call->argument[0];
    struct timespec now;
    look();
    tell(CLOCK_REALTIME, &now);
    if (to)
        *to = now.tv_sec;
    return now.tv_sec;
}

static long sleep_until(uint64_t until, struct timespec *rest)
{
    while (until > token_run->now) {
        if (token_wait(SIM_SLEEPS, until, 0) != TOKEN_SIGNAL)
            continue;
        uint64_t left = until > token_run->now ? until - token_run->now : 0;
        if (rest)
            *rest = (struct timespec){(time_t)(left / SECOND), (long)(left % SECOND)};
        return -EINTR;
    }
    return 0;
}

static bool is_span(const struct timespec *time)
{
    return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < (long)SECOND;
}

long answer_nanosleep(struct caught *call)
{
    const struct timespec *span = (void *)call->argument[0];
    if (!is_span(span))
        return -EINVAL;
    return sleep_until(token_later(clock_nanos(span)), (void *)call->argument[1]);
}

long answer_clock_nanosleep(struct caught *call)
{
    const struct timespec *time = (void *)call->argument[2];
    if (!is_span(time))
        return -EINVAL;
    if (call->argument[1] & TIMER_ABSTIME)
        return sleep_until(clock_from_absolute((clockid_t)call->argument[0], time), NULL);
    return sleep_until(token_later(clock_nanos(time)), (void *)call->argument[3]);
}

long answer_sched_yield(struct caught *call)
{
    token_spin();
    return 0;
}
