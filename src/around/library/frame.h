/* What surrounds a call of the program while layers are around it. The program finds errno as the library left it, or
 * as a layer that refused the call set it: what layers write or ask meanwhile changes nothing. And only the calls that
 * wait for events are cancellation points, since layers hold locks (base/uncancelled.h). A call without layers has no
 * frame. */
#pragma once

#include "base/result.h"
#include "base/uncancelled.h"
#include "calls/calls.h"

/* A number for each call of verbs.def by its name. */
enum frame_call {
#define VERB(answer, type, name, work, parameters, arguments) FRAME_##name,
#define NEWER_VERB VERB
#define MEMBER(table, answer, type, member, name, work, parameters, arguments) FRAME_##name,
#include "calls/verbs.def"
};

/* A call in which a thread is. */
struct frame_state {
    enum frame_call call;
    int after;   /* errno when the library returned */
    bool called; /* the library was */
};

struct frame {
    struct frame_state outer; /* a layer may make calls of its own */
    int before;               /* errno when the program called */
    int cancellable;
};

void frame_begin(struct frame *, enum frame_call);

/* The library has returned from this call. Thread-safe. */
void frame_called(enum frame_call);

/* Sets errno. `error`: of a result that is a failure, otherwise 0. */
void frame_end(struct frame *, int error);

/* Leaves the frame of a thread that is cancelled, before the program's own cleanups. */
void frame_drop(void *frame);

#define FRAMED(answer, call_, calls, arguments)                                                                        \
    __extension__({                                                                                                    \
        struct frame frame;                                                                                            \
        frame_begin(&frame, FRAME_##call_);                                                                            \
        frame.cancellable = uncancelled_begin();                                                                       \
        __typeof__(calls_get(calls, call_) arguments) result = calls_get(calls, call_) arguments;                      \
        uncancelled_end(frame.cancellable);                                                                            \
        frame_end(&frame, RESULT_FAILED_##answer(result) ? RESULT_ERROR_##answer(result) : 0);                         \
        result;                                                                                                        \
    })
#define FRAMED_code(...) FRAMED(code, __VA_ARGS__)
#define FRAMED_minus(...) FRAMED(minus, __VA_ARGS__)
#define FRAMED_negative(...) FRAMED(negative, __VA_ARGS__)
#define FRAMED_pointer(...) FRAMED(pointer, __VA_ARGS__)
#define FRAMED_plain(call, calls, arguments) (calls_get(calls, call) arguments)
#define FRAMED_event(call_, calls, arguments)                                                                          \
    __extension__({                                                                                                    \
        struct frame frame;                                                                                            \
        int result;                                                                                                    \
        frame_begin(&frame, FRAME_##call_);                                                                            \
        pthread_cleanup_push(frame_drop, &frame);                                                                      \
        result = calls_get(calls, call_) arguments;                                                                    \
        pthread_cleanup_pop(0);                                                                                        \
        frame_end(&frame, result < 0 ? errno : 0);                                                                     \
        result;                                                                                                        \
    })
#define FRAMED_nothing(call_, calls, arguments)                                                                        \
    __extension__({                                                                                                    \
        struct frame frame;                                                                                            \
        frame_begin(&frame, FRAME_##call_);                                                                            \
        frame.cancellable = uncancelled_begin();                                                                       \
        calls_get(calls, call_) arguments;                                                                             \
        uncancelled_end(frame.cancellable);                                                                            \
        frame_end(&frame, 0);                                                                                          \
    })
