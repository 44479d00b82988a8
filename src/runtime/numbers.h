/* Numbers of endpoints, and of XRC SRQs: unique on the host, claimed in blocks from the node, found in two steps. */
#ifndef RUNTIME_NUMBERS_H
#define RUNTIME_NUMBERS_H

#include "ipc/node.h"

struct number_table *numbers_create(void);
void numbers_destroy(struct number_table *);

/* Gives the object a number that was not used lately and enters it. 0 or ENOMEM, ENOSPC; ENODEV when there is no node
 * any more (NULL) and the table has no free number. Under process->control. */
int numbers_enter(struct node *, struct number_table *, void *object, uint32_t *number);

/* Takes it out; a lookup that runs may still return it until progress_quiesce. Under process->control. */
void numbers_remove(struct number_table *, uint32_t number);

/* Calls visit for every object. Under process->progress. */
void numbers_each(const struct number_table *, void (*visit)(void *object, void *context), void *context);

/* NULL when nothing here has the number. Under process->progress, or what else keeps the object from being freed. */
void *numbers_find(const struct number_table *, uint32_t number);

#endif
