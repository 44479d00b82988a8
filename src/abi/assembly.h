/* The layers' parts of a process (process/process.h). */
#ifndef ABI_ASSEMBLY_H
#define ABI_ASSEMBLY_H

#include "process/process.h"

extern const struct process_parts assembly_parts;

#endif
