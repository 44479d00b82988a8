/* The labs of a user by their names, from outside of them. */
#pragma once

#include <stdbool.h>

/* Takes the name for this process until it ends; false: another lab of this user has it. */
bool reach_take_name(const char *name);

/* Enters the lab of this name: forks a child in the lab's own process namespace, and returns true in that child. The
 * caller waits for the child and ends with its status. False: there is no such lab, or (errno) it can't be
 * entered. */
bool reach_enter(const char *name);
