/* Rules by which a run has faults: --fault, --inject, --script and --adverse, as the environment has them. */
#pragma once

#include <stdbool.h>

/* Leaves out each item of --fault, each rule of --inject and --script, and --adverse as a whole, where `ends` says that
 * the run ends as before without it. A script that gets shorter is written to `script`, and read from there. Returns
 * whether some could go. */
bool rules_leave_out(const char *script, bool (*ends)(void *), void *of);

/* Prints the rules that were left out, a line for each; and the options that are left, each after a blank. */
void rules_print_needless(void);
void rules_print_left(void);
