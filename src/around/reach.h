/* The reach of rules of scripts around another libibverbs: its devices have names, and the rules that would do more to
 * them are refused (script/holds.h). */
#pragma once

#include "script/reach.h"

extern const struct script_reach around_reach;
