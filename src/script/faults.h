/* The short form of rules for all packets, which --fault and SOFTVERBS_FAULT have, too: fault
 * drop=1%,delay=1ms+-0.5ms,seed=7. Pure. */
#ifndef SCRIPT_FAULTS_H
#define SCRIPT_FAULTS_H

#include "script/reader.h"

/* Behind the word `fault`, for whose first item the reader has begun a rule. Each item but the seed is a rule. */
bool faults_read(struct reader *, struct script *);

/* The same list alone, as SOFTVERBS_FAULT has it: its rules, which have line 0, behind those that the script has, and
 * its seed, 0 where it has none, which may be all that it says. False: `fault` says where it is wrong and why. */
bool faults_parse(const char *text, struct script *, uint64_t *seed, struct script_fault *fault);

#endif
