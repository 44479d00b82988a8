/* A library that is built with several options of the compiler: functions whose frames differ, which call each other.
 */
#pragma once

/* Calls `visit` through `depth` functions, which the seed chooses. */
typedef unsigned frames_walk(unsigned seed, unsigned depth, unsigned (*visit)(void));
