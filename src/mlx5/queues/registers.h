/* Doorbell registers. A program stores into one after it has written work into a queue in memory. The stores need not
 * be understood, as the queues' records say what there is. While the helper works, it looks at the records. Before it
 * sleeps, it closes the registers: the first store then faults, opens them, and wakes the helper.
 *
 *     program:  record;  fence;  register (may fault: the registers are opened, and the helper is woken)
 *     helper:   close;   fence of all threads;  look at the records;  sleep
 *
 * A store before the closing is seen by the look, as the record was stored first. A store after it faults. A second
 * thread that stores while the registers are open again is seen by the look of the woken helper, as the notice
 * follows the opening. A handler of the signal may be late and open the registers in a later closing than the one in
 * which its thread faulted: it asks whom to wake when it has opened them, so that a notice follows this opening, too.
 * tests/model has all that in every interleaving, for the way by signal.
 *
 * There are two ways to close them. By userfaultfd(2) the store waits in the kernel until the helper has opened the
 * registers. Where that is forbidden (containers), they are read-only, and the handler of SIGSEGV (link/guard.h) opens
 * them; not while a thread blocks that signal, which would end the process. Where neither works the helper never
 * sleeps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct node;

enum { REGISTERS_PAGE = 4096, REGISTERS_BELL = 0x800 };

/* Makes the pages of registers, once. False: no memory. Under process->control. */
bool registers_make(void);

/* The page of the queue pair, or completion queue, with this number: several may have one. */
char *registers_of_queue_pair(uint32_t number);
char *registers_of_completions(uint32_t number);

/* Lets each store wake the node's helper until registers_open. False: no store would. By the helper. */
bool registers_close(struct node *);

/* Opens the registers. True: a store had found one closed, or they could not be closed. */
bool registers_open(void);

/* The descriptor that can be read when a store waits; -1: none. */
int registers_descriptor(void);

/* Opens the registers in the child of a fork, whose stores tell nobody. */
void registers_inherit(void);
