/* The parts of a process of this library. */
#ifndef ABI_ASSEMBLY_H
#define ABI_ASSEMBLY_H

#include "process/process.h"

extern const struct process_parts assembly_parts;

#endif
