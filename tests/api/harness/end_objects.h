/* Where calls are made: the objects of one end of a test, in whatever process it is. */
#ifndef API_END_OBJECTS_H
#define API_END_OBJECTS_H

#include "call.h"

struct stage {
    struct ibv_context *context;
    void *objects[KINDS][OBJECTS];
    uint64_t cq_flags[OBJECTS]; /* wc_flags of extended CQs */
    unsigned unacknowledged[OBJECTS];
    struct {
        void *address;
        size_t length;
    } memory[OBJECTS], lost; /* lost: unmapped by the test */
};

/* Makes the call; *call becomes the answer. `payload` has PAYLOAD_MAX bytes and is used both ways. */
void stage_execute(struct stage *, struct call *, void *payload);

/* Registers an object of the stage; its number. */
int stage_enter(struct stage *, enum kind, void *object);
/* The object, NULL for NOBODY; a number that was never given out ends the process. */
void *stage_object(struct stage *, enum kind, int number);

/* The halves of the table of verbs. */
typedef void stage_verb(struct stage *, struct call *, void *payload);
extern stage_verb *const stage_object_verbs[VERBS]; /* stage.c: what makes, changes and destroys */
extern stage_verb *const stage_data_verbs[VERBS];   /* stage_data.c: what moves data and waits */

#endif
