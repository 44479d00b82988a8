/* Stacks to switch between. */
#pragma once

#include <stddef.h>

#if defined(__x86_64__)
typedef void *switch_place; /* the stack pointer; what must be kept is on the stack */

void switch_between(switch_place *from, switch_place to);

__asm__(".text\n"
        ".globl switch_between\n"
        ".type switch_between, @function\n"
        "switch_between:\n"
        "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        "mov %rsp, (%rdi)\n"
        "mov %rsi, %rsp\n"
        "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
        "ret\n"
        ".size switch_between, . - switch_between\n");

static inline void switch_make(switch_place *place, void *stack, size_t size, void (*entry)(void))
{
    void **top = (void **)((char *)stack + size);
    *--top = NULL; /* as after a call, the stack is 8 off a multiple of 16 */
    *--top = (void *)entry;
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    *place = top;
}

#define SWITCH(from, to) switch_between(&(from), (to))
#else
#include <ucontext.h>
typedef ucontext_t switch_place;

static inline void switch_make(switch_place *place, void *stack, size_t size, void (*entry)(void))
{
    getcontext(place);
    place->uc_stack.ss_sp = stack;
    place->uc_stack.ss_size = size;
    place->uc_link = NULL;
    makecontext(place, entry, 0);
}

#define SWITCH(from, to) swapcontext(&(from), &(to))
#endif
