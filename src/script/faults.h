/* The short form of rules for all packets, which --fault and SOFTVERBS_FAULT have, too: fault
 * drop=1%,delay=1ms+-0.5ms,seed=7. Pure. */
#pragma once

#include "events/events.h"
#include "script/reader.h"

/* Reads the items after `fault`; the reader has begun a rule for the first. Each item except the seed is a rule. */
bool faults_read(struct reader *, struct script *);

/* Reads the list alone, as SOFTVERBS_FAULT has it, and appends its rules, with line 0, to the script's. *seed is the
 * list's, or 0; a seed alone is a list, too. False: `fault` says where the list is wrong and why. */
bool faults_parse(const char *text, struct script *, uint64_t *seed, struct script_fault *fault);

/* What a rule does for a kind of fault: SCRIPT_DROP and so on; 0: it has no word, but a value. */
extern const unsigned fault_fates[FAULT_KINDS];
