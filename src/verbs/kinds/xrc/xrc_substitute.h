/* The substitute, which executes in this process the requests to another process's XRC_RECV queue pair that name an
 * SRQ of this process (xrc_front.h): a queue pair that the program does not know, with the number of that one. It
 * receives the requests that the queue pair forwards, and sends it the responses. All under process->progress. */
#pragma once

#include "base/nanos.h"

struct process;

/* Takes control messages of other processes (xrc_control.h) from now on. */
void xrc_substitutes_begin(struct process *);

/* Ends all substitutes, with the process; takes process->progress. */
void xrc_substitutes_end(struct process *);

/* Ends the substitutes for queue pairs of processes that have left, and takes back positions that these were lent. */
void xrc_substitutes_departed(struct process *, nanos now);

/* Gives the locks of all substitutes back in the child of a fork. */
void xrc_substitutes_inherit(struct process *);
