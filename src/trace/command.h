/* Commands of librdmacm as text: their arguments, and the answer of a command that succeeded. */
#pragma once

#include "calls/command.h"
#include "trace/text.h"

/* Writes TRACE_NEXT, a name, "=" and a value for each argument: the identifier, and the others of its layout. */
void command_arguments(struct trace_line *, const struct ucma_call *, enum ucma_command_number);

/* Writes the answer of a successful command: "identifier 3", "ESTABLISHED identifier 3", or nothing. Reads it from
 * the program's memory, where the command has written it. */
void command_answer(struct trace_line *, const struct ucma_call *, enum ucma_command_number);
