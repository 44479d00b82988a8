/* What the doctor looks at, one function each. */
#ifndef TOOLS_CHECKS_H
#define TOOLS_CHECKS_H

#include <stddef.h>

enum verdict { VERDICT_OK, VERDICT_WARNING, VERDICT_PROBLEM };

/* Writes one English sentence (or two: the cost and the cure) to `say`. */
typedef enum verdict check(char *say, size_t size);

/* the machine: checks_machine.c */
check check_processors, check_descriptors, check_sealed_memory, check_shared_memory, check_reading, check_namespaces,
    check_devices;

/* what belongs to softverbs: checks_own.c */
check check_library, check_other_library, check_directory, check_left_behind, check_paths, check_settings;

/* what others want of our library: checks_symbols.c */
check check_symbols;

#endif
