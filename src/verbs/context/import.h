/* Import and unimport: ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3), ibv_import_dm(3). Contexts of one
 * process that were imported from each other are a family and know each other's objects by their handles. An import is
 * one more name for an object, which lives until it is destroyed by any of its names; the names live until they are
 * unimported, or until they were used to destroy it. Thread-safe unless said otherwise.
 *
 * Between processes nothing can be imported: a region is memory of the process that registered it. */
#ifndef VERBS_CONTEXT_IMPORT_H
#define VERBS_CONTEXT_IMPORT_H

#include "verbs/object/object.h"

/* All of these: NULL and errno, ENOENT when the handle names no such object of the family. */
struct ibv_pd *import_pd(struct ibv_context *, uint32_t handle);
struct ibv_mr *import_mr(struct ibv_pd *, uint32_t handle);
struct ibv_dm *import_dm(struct ibv_context *, uint32_t handle);
void import_undo(struct object *name);

/* Makes the descriptor by which a context can be found again: -1 and errno. */
int import_make_descriptor(void);
/* The identity of the file behind the descriptor, which duplicates share; false: it is no context's. */
bool import_identify(int fd, struct context_identity *);
/* Why nothing of this process has that identity: an errno, with the reason logged. */
int import_refuse(int fd);

/* The context closes: its imports end, and what may have been imported from it goes on in another of its family. Under
 * process->control. */
void import_close(struct context *);

#endif
