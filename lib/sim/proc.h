/* Files of /proc that differ from run to run. */
#pragma once

/* A descriptor of a file with a text of the run's own in place of the one of this path; negative: it is no such
 * path. `flags`: of open(2), of which O_CLOEXEC counts.
 */
long proc_open(const char *path, long flags);
