/* The layers' parts of a process (process/process.h). */
#pragma once

#include "process/process.h"

extern const struct process_parts assembly_parts;
