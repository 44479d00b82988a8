/* The bottom of all layers of calls (calls/calls.h): each file fills in the functions that it has. */
#pragma once

#include "calls/calls.h"

void bottom_of_exports(struct calls *);    /* VERB, NEWER_VERB */
void bottom_of_operations(struct calls *); /* MEMBER, FAST */
void bottom_of_commands(struct calls *);   /* commands of librdmacm */
void bottom_of_vendors(struct calls *);    /* VENDOR */
