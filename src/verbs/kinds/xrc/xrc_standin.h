/* The stand-in, which executes in this process the requests to another process's XRC_RECV queue pair that name an SRQ
 * of ours (xrc_front.h): a queue pair that the program does not know, with the number of that other one. It receives
 * the requests that the other passes on and sends its responses there. All under process->progress. */
#ifndef VERBS_KINDS_XRC_XRC_STANDIN_H
#define VERBS_KINDS_XRC_XRC_STANDIN_H

#include "base/nanos.h"

struct process;

/* Control messages of other processes (xrc_control.h) are taken from now on. */
void xrc_standins_begin(struct process *);

/* The process ends; takes process->progress. */
void xrc_standins_end(struct process *);

/* Some process has gone: its queue pairs' stand-ins end here, and what its stand-ins had of ours is taken back. */
void xrc_standins_departed(struct process *, nanos now);

/* After a fork, in the child. */
void xrc_standins_inherit(struct process *);

#endif
