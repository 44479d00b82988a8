/* The checks of the doctor, a function for each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum verdict { VERDICT_OK, VERDICT_WARNING, VERDICT_PROBLEM };

/* Writes one English sentence (or two: the cost and the cure) to `say`. */
typedef enum verdict check(char *say, size_t size);

/* the machine: checks_machine.c */
check check_processors, check_descriptors, check_sealed_memory, check_shared_memory, check_reading, check_namespaces,
    check_devices, check_packages, check_doorbells;

/* what belongs to softverbs: checks_own.c */
check check_library, check_other_library, check_directory, check_left_behind, check_paths, check_settings, check_nccl;

/* GPUs, and what NCCL and UCX do with their memory: checks_gpu.c */
bool checks_have_gpu(void);
check check_gpu, check_gpu_memory, check_gpu_nccl, check_gpu_ucx;

/* Adds a finding. findings.c */
void check_say(enum verdict, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Prints all findings, as a table or as a list of JSON. Returns the worst. */
enum verdict findings_print(bool as_json);

/* Checks whether `softverbs run` can run this program (a path, or a name in $PATH), which libraries it will load, and
 * what is missing. Reads the file and lets the dynamic linker list its libraries; does not start the program.
 * `around`: the same for `softverbs around`, whose program loads its own libraries.
 * checks_program.c */
void check_program(const char *name, bool around);

/* Checks the libibverbs at this path, which the program meets without softverbs ("": none), a copy that it names with
 * its directory ("": none), libraries that go past libibverbs ("": none), drivers and devices. checks_around.c */
void check_around(const char *verbs, const char *named, const char *direct);

/* Checks whether this network interface can carry RoCEv2. checks_network.c */
void check_network(const char *interface);

/* the symbols that other libraries want of ours: checks_symbols.c */
check check_symbols;
