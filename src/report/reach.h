/* The reach of rules of scripts at softverbs' own devices. */
#pragma once

#include "script/reach.h"

extern const struct script_reach report_reach;
