/* Stories of queue pairs whose work fails, made of the program's calls: its attributes and their times, the work that
 * failed first and its post, what the regions of memory allow, the counters of the port. They are lines of the same
 * facts as stories of softverbs' own devices (facts/facts.def), in the file that the user named (SOFTVERBS_STORY). */
#pragma once

/* Follows the program's calls if the user named a file. Before check_begin, which calls the hooks. */
void story_begin(void);
