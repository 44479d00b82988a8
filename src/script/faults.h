/* The short form of rules for all packets, "fault drop=1%,delay=1ms+-0.5ms,seed=7", whose list --fault and
 * SOFTVERBS_FAULT have, too. Pure. */
#pragma once

#include "events/events.h"
#include "script/reader.h"

/* Reads the items after `fault`; the reader has begun a rule for the first. Each item except the seed is a rule. */
bool faults_read(struct reader *, struct script *);

/* Reads a list alone, as SOFTVERBS_FAULT has it, and appends its rules, with line 0, to the script. Writes the
 * list's seed, or 0; a seed alone is a list, too. False: `fault` says where the list is wrong and why. */
bool faults_parse(const char *text, struct script *, uint64_t *seed, struct script_fault *fault);

/* The fate that a rule has for a kind of fault: SCRIPT_DROP and so on; 0: it has a value instead. */
extern const unsigned fault_fates[FAULT_KINDS];
