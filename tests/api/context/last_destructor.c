/* A library that needs nothing of verbs and is opened by dlopen: its destructor runs after libibverbs'. */
#include <stddef.h>

__attribute__((visibility("default"))) extern void (*last_of_all)(void);
void (*last_of_all)(void);

static void __attribute__((destructor)) end(void)
{
    if (last_of_all)
        last_of_all();
}
