/* Where calls are made: the objects of one end of a test, in whatever process it is. */
#pragma once

#include "call.h"

struct end_objects {
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
void end_execute(struct end_objects *, struct call *, void *payload);

/* Registers an object; returns its number. */
int end_enter(struct end_objects *, enum kind, void *object);
/* The object, NULL for NOBODY; a number that was never given out ends the process. */
void *end_object(struct end_objects *, enum kind, int number);

/* The halves of the table of verbs. */
typedef void end_verb(struct end_objects *, struct call *, void *payload);
extern end_verb *const end_object_verbs[VERBS]; /* end_objects.c: what makes, changes and destroys */
extern end_verb *const end_data_verbs[VERBS];   /* end_objects_data.c: what moves data and waits */
