#include "stack.h"

#include <execinfo.h>
#include <stdio.h>
#include <string.h>

#include "answer.h"
#include "raw.h"
#include "token.h"

enum { FRAMES = 48, STANDARD_ERROR = 2 };

void stack_prepare(void)
{
    void *frames[2];
    backtrace(frames, 2);
}

/* Functions of the C library make calls, which are not caught meanwhile. */
void stack_show(void)
{
    void *frames[FRAMES];
    char line[96];
    const struct sim_thread *thread = token_thread();
    answer_pause_catching();
    int length =
        snprintf(line, sizeof line, "--- thread %u, %s, process %d:\n", thread->serial, thread->name, thread->pid);
    RAW(write, STANDARD_ERROR, line, length);
    int count = backtrace(frames, FRAMES);
    for (int i = 0; i < count; i++)
        if (!answer_is_own((uintptr_t)frames[i]))
            backtrace_symbols_fd(&frames[i], 1, STANDARD_ERROR);
    answer_resume_catching();
}
