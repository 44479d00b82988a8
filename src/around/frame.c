#include "around/frame.h"

static _Thread_local struct frame *innermost __attribute__((tls_model("initial-exec")));

void frame_begin(struct frame *frame, enum frame_call call)
{
    *frame = (struct frame){.outer = innermost, .call = call, .before = errno};
    innermost = frame;
}

/* A layer may ask the library other things before and after, with its own call. */
void frame_called(enum frame_call call)
{
    if (innermost && innermost->call == call && !innermost->called) {
        innermost->called = true;
        innermost->after = errno;
    }
}

void frame_end(struct frame *frame, int error)
{
    innermost = frame->outer;
    errno = frame->called ? frame->after : error ? error : frame->before;
}

void frame_drop(void *frame)
{
    innermost = ((struct frame *)frame)->outer;
}
