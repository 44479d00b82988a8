#include "around/library/frame.h"

/* No pointer to a frame is kept: a signal handler may leave the call by longjmp(3), and the stack has the frame no
 * more. */
static _Thread_local struct frame_state innermost __attribute__((tls_model("initial-exec")));

void frame_begin(struct frame *frame, enum frame_call call)
{
    *frame = (struct frame){.outer = innermost, .before = errno};
    innermost = (struct frame_state){.call = call};
}

/* A layer may ask the library other things before and after, with its own call. */
void frame_called(enum frame_call call)
{
    if (innermost.call == call && !innermost.called) {
        innermost.called = true;
        innermost.after = errno;
    }
}

void frame_end(struct frame *frame, int error)
{
    const struct frame_state ended = innermost;
    innermost = frame->outer;
    errno = ended.called ? ended.after : error ? error : frame->before;
}

void frame_drop(void *frame)
{
    innermost = ((struct frame *)frame)->outer;
}
