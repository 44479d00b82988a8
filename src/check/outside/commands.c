#include "check/outside/commands.h"

#include "calls/command.h"
#include "check/hooks_call.h"
#include "check/layer.h"

enum how { told, quiet, waits }; /* as in ucma.def */

/* Returns true if the rules look at the refusal. A disconnect may be a second one, which is refused rightly. */
static bool is_news(enum how how, enum ucma_command_number number)
{
    return how == told && number != UCMA_DISCONNECT;
}

#define COMMAND(number, page, how, serve, layout, least, answer, object)                                               \
    static int see_##serve(struct ucma_call *call)                                                                     \
    {                                                                                                                  \
        int error = layer_below(serve)(call);                                                                          \
        if (error && is_news(how, UCMA_##number))                                                                      \
            hooks_refused(#page, error);                                                                               \
        return error;                                                                                                  \
    }
#include "calls/ucma.def"

void commands_fill(struct calls *calls)
{
#define COMMAND(number, page, how, serve, layout, least, answer, object) calls->serve = see_##serve;
#include "calls/ucma.def"
}
