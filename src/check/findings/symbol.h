/* Functions, files and lines of addresses in the program. libdw, if it is installed (Debian: libdw1), reads them from
 * the program's debugging information; else there are the module and the offset in it, for addr2line(1). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SYMBOL_SIZE = 352 };

struct symbol {
    bool is_wrapper;    /* a function of <infiniband/verbs.h> or <rdma/rdma_verbs.h> that was not inlined */
    char function[128]; /* "": not known */
    char file[128];     /* without its directories; "": not known */
    char path[512];     /* as the compiler wrote it */
    int line;           /* 0: not known */
    char module[128];   /* the path of the program or library, without its directories */
    size_t offset;      /* of the address in the module */
};

/* Loads libdw, before other threads call verbs. */
void symbol_begin(void);

/* Finds the call before a return address. If functions of the verbs' headers were inlined there, finds the place that
 * called them. Thread-safe. */
void symbol_find(const void *address, struct symbol *);

/* Returns true if this return address is in a function of those headers, so that its caller is the place of interest.
 * The result is cached, so asking again costs a load. Thread-safe. */
bool symbol_is_wrapper(const void *address);

/* How the frame of the function at a return address leads to the frame of its caller. */
struct symbol_step {
    _Atomic uintptr_t address; /* 0: the entry is free. Written last; after that only `base` may change */
    _Atomic uint8_t base;      /* enum symbol_base */
    int32_t frame;             /* the base plus this is the caller's stack pointer after the call; the return address is
                                  below that */
    int32_t
        saved;  /* where the caller's frame pointer is saved, from that stack pointer; 0: it is still in its register */
    bool loses; /* the caller's frame pointer is not known */
};

/* The register from which the frame of the function at a return address is found. */
enum symbol_base { SYMBOL_NO_BASE /* not known */, SYMBOL_STACK_POINTER, SYMBOL_FRAME_POINTER };

enum { SYMBOL_STEPS = 4096, SYMBOL_NEAR = 8 };
extern struct symbol_step *_Atomic symbol_steps; /* SYMBOL_STEPS; NULL until the first is learned */

static inline size_t symbol_place(const void *address, unsigned near)
{
    return (((uintptr_t)address * 0x9e3779b97f4a7c15ull >> 32) + near) % SYMBOL_STEPS;
}

/* Learns the step from the table that exceptions use (.eh_frame). */
const struct symbol_step *symbol_learn(const void *address);

/* Returns the step from the frame at a return address, with SYMBOL_NO_BASE if it is not known or there is no room for
 * it. Asking again costs a few loads. Thread-safe. */
static inline const struct symbol_step *symbol_step(const void *address)
{
    const struct symbol_step *steps = atomic_load_explicit(&symbol_steps, memory_order_acquire);
    const struct symbol_step *step = steps ? &steps[symbol_place(address, 0)] : NULL;
    bool known = step && atomic_load_explicit(&step->address, memory_order_acquire) == (uintptr_t)address;
    return __builtin_expect(known, 1) ? step : symbol_learn(address);
}

/* Forgets the step from the frame at this address, which was wrong. Thread-safe. */
void symbol_distrust(const void *address);

/* Writes "main (FILE:120)", "main (libx.so+0x1234)" or "libx.so+0x1234". */
void symbol_describe(const struct symbol *, char text[SYMBOL_SIZE]);
