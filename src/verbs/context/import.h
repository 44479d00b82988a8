/* Import and unimport: ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3), ibv_import_dm(3). Contexts of one
 * process that were imported from each other are a family and know each other's objects by their handles. An import is
 * another name of an object, which lives until it is destroyed by any of its names; the names live until they are
 * unimported, or until they were used to destroy it. Thread-safe unless said otherwise.
 *
 * Processes can't import from each other: a region is memory of the process that registered it. */
#pragma once

#include "verbs/object/context.h"

/* Make another name. NULL and errno; ENOENT when the handle names no such object of the family. */
struct ibv_pd *import_pd(struct ibv_context *, uint32_t handle);
struct ibv_mr *import_mr(struct ibv_pd *, uint32_t handle);
struct ibv_dm *import_dm(struct ibv_context *, uint32_t handle);
void import_undo(struct object *name); /* unimports a name */

/* Makes the descriptor by which a context can be found again; -1 and errno. */
int import_make_descriptor(void);
/* Reads the identity of the descriptor's file, which duplicates share. False and errno: fstat(2) failed. */
bool import_identify(int fd, struct context_identity *);
/* Logs the reason why no context of this process has the descriptor's file, and returns an errno. */
int import_refuse(int fd);

/* Ends the imports of a context that closes; objects that may have been imported from it continue in another one of
 * its family. Under process->control. */
void import_close(struct context *);
