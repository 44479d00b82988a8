/* Programs on hosts of a lab. */
#pragma once

#include <sys/types.h>

/* Enters the host that the process `holder` holds, with the environment of `softverbs run` there, and becomes the
 * program. Returns an exit status after a sentence. */
int on_become(const char *host, pid_t holder, char **program);
