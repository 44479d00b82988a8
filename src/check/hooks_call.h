/* The files of check/ that see what the program does call the hooks of the rules by these functions. */
#pragma once

#include <stddef.h>

#include "check/hooks.h"

/* Calls this hook of each file of rules that has it. */
#define HOOKS_CALL(hook, ...)                                                                                          \
    do {                                                                                                               \
        for (hooks_function *const *hooks_at = hooks_lists[HOOKS_PLACE(hook)]; *hooks_at; hooks_at++)                  \
            ((__typeof__(((struct hooks *)NULL)->hook))*hooks_at)(__VA_ARGS__);                                        \
    } while (0)

/* Hooks of a user of the checker that is not a file of rules; they are called where the user wants no rule, too. Before
 * hooks_begin, at most once. */
void hooks_follow(const struct hooks *);
bool hooks_are_followed(void);

/* Makes the list of all functions, ended by NULL, for each hook. Before the program runs. */
void hooks_begin(void);

/* Calls the hooks for a call that the library has refused with this errno. Takes the lock; errno stays. */
void hooks_refused(const char *call, int error);

/* Calls the hooks if the caller is in a signal handler; takes the lock then. */
void hooks_see_place(const struct place *, const char *call);

/* Calls the hooks if a call of the data path names this object in a child of a fork; takes the lock then. */
void hooks_see_use_in_child(enum shadow_kind, const void *handle, const char *call);
static inline void hooks_see_use(enum shadow_kind kind, const void *handle, const char *call)
{
    if (__builtin_expect(shadow_is_child, 0))
        hooks_see_use_in_child(kind, handle, call);
}

/* Calls the hooks for an event that was fetched; takes the lock. */
void hooks_see_event(const struct ibv_async_event *);
void hooks_see_form(const struct calls_form_mistake *);

/* Returns true if this address is a destroyed object's and no living one's, and calls the hooks of the rules then.
 * Takes the lock. */
bool hooks_is_gone(enum shadow_kind, const void *handle, const char *call);

typedef void hooks_function(void);

enum {
    HOOKS_FILES = 0
#define RULES_OF(file) +1
#include "check/rules.def"
};

#define HOOKS_PLACE(hook) (offsetof(struct hooks, hook) / sizeof(hooks_function *))
extern hooks_function *hooks_lists[sizeof(struct hooks) / sizeof(hooks_function *)][HOOKS_FILES + 2];
