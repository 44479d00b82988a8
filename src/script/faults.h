/* The short form of rules for all packets, which --fault has, too: fault drop=1%,delay=1ms+-0.5ms,seed=7. Pure. */
#ifndef SCRIPT_FAULTS_H
#define SCRIPT_FAULTS_H

#include "script/reader.h"

/* Behind the word `fault`, for whose first item the reader has begun a rule. Each item but the seed is a rule. */
bool faults_read(struct reader *, struct script *);

#endif
