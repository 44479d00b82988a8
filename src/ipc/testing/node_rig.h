/* Processes that join a private directory and talk, for the tests here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ipc/node.h"

/* Makes a fresh directory (0700) below $TMPDIR or /tmp; rig_remove removes it with everything in it. */
void rig_directory(char *to);
void rig_remove(const char *directory);
/* How many entries of the directory have names that begin so. */
unsigned rig_count(const char *directory, const char *start);

/* Forks a process that runs `body` and exits with its result. */
pid_t rig_start(int (*body)(const char *directory, void *context), const char *directory, void *context);
/* Returns the exit status, or 128 + the signal that killed the process. After `seconds` kills it and returns 255. */
int rig_wait(pid_t process, int seconds);

/* Joins, and ends the process if that fails. Processes started while it is open abandon what they inherit of it. */
struct node *rig_open(const char *directory);
void rig_close(struct node *);

/* Returns zeroed memory that is shared with processes that are started afterwards. */
void *rig_share(size_t size);
void rig_unshare(void *memory, size_t size);

/* Makes the library's maps fail from now on. (A limit of the process would hit the sanitizers' memory, too.) */
void rig_refuse_memory(bool refuse);

/* Does one round of a node's owner: service, receive. Returns how many frames were taken. */
unsigned rig_turn(struct node *, node_take *, void *context);
/* rig_turn after sleeping until there is something to do, at most for these milliseconds. */
unsigned rig_sleep_and_turn(struct node *, node_take *, void *context, int milliseconds);

/* Sends bytes to the owner of a number; false: it has no owner. Runs turns of the node while it waits for room. */
bool rig_send(struct node *, uint32_t number, const void *bytes, uint32_t length, bool by_reference, node_take *,
              void *context);
