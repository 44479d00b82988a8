/* The frame of every wrapper of the interface around the call: it names the call for the line of a refusal
 * (events/refusal.h) and keeps errno in step (base/result.h). Each way in which verbs.def lets a verb report failure
 * has its macro AROUND_. */
#ifndef ABI_AROUND_H
#define ABI_AROUND_H

#include "base/result.h"
#include "events/refusal.h"

/* `failed` is applied to `result`, the call's answer. */
#define AROUND(name, call, failed)                                                                                     \
    __extension__({                                                                                                    \
        const struct refusal before_it = refusal_begin(name);                                                          \
        __typeof__(call) result = (call);                                                                              \
        refusal_end(&before_it, (failed) ? errno : 0);                                                                 \
        result;                                                                                                        \
    })

#define AROUND_code(name, call) AROUND(name, RESULT_code(call), result != 0)
#define AROUND_minus(name, call) AROUND(name, RESULT_minus(call), result < 0)
#define AROUND_negative(name, call) AROUND(name, RESULT_negative(call), result < 0)
#define AROUND_pointer(name, call) AROUND(name, RESULT_pointer(call), !result)
#define AROUND_event(name, call) AROUND(name, RESULT_event(call), false) /* EAGAIN and EINTR are answers */
#define AROUND_plain(name, call) RESULT_plain(call)

#define AROUND_nothing(name, call)                                                                                     \
    __extension__({                                                                                                    \
        const struct refusal before_it = refusal_begin(name);                                                          \
        RESULT_nothing(call);                                                                                          \
        refusal_end(&before_it, 0);                                                                                    \
    })

#endif
