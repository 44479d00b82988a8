#pragma once

struct process;

/* Memory is touched only under the lock of a queue pair: after this, no thread uses a region that was taken out of the
 * keys before. Under process->control. */
void quiesce_memory(struct process *);
