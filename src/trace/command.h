/* Commands of librdmacm as text: their arguments, and what a successful one has answered. */
#ifndef TRACE_COMMAND_H
#define TRACE_COMMAND_H

#include "calls/command.h"
#include "trace/text.h"

/* TRACE_NEXT, a name, "=" and a value for each argument: the identifier, and those of its layout. */
void command_arguments(struct trace_line *, const struct ucma_call *, enum ucma_command_number);

/* Behind a success: "identifier 3", "ESTABLISHED identifier 3", or nothing. Reads what the command has written where
 * its program wants the answer. */
void command_answer(struct trace_line *, const struct ucma_call *, enum ucma_command_number);

#endif
