/* Names, and docs/reference/errors.md. */
#include <stdio.h>
#include <stdlib.h>

#include "matrix.h"
#include "matrix_names.h"

static const char *const operation_names[OPERATIONS] = {
    [OPERATION_SEND] = "SEND",
    [OPERATION_SEND_IMM] = "SEND_IMM",
    [OPERATION_SEND_INV] = "SEND_INV",
    [OPERATION_WRITE] = "WRITE",
    [OPERATION_WRITE_IMM] = "WRITE_IMM",
    [OPERATION_READ] = "READ",
    [OPERATION_COMPARE_SWAP] = "COMPARE_SWAP",
    [OPERATION_FETCH_ADD] = "FETCH_ADD",
    [OPERATION_ATOMIC_WRITE] = "ATOMIC_WRITE",
};

static const char *const fault_names[FAULTS] = {
#define FAULT(name, wish, spoil, sentence) #name,
#include "error_faults.def"
#undef FAULT
};

const char *name_of_type(enum ibv_qp_type type)
{
    return type == IBV_QPT_RC ? "RC" : type == IBV_QPT_UC ? "UC" : "UD";
}

const char *name_of_operation(enum operation_name operation)
{
    return operation_names[operation];
}

const char *name_of_fault(enum fault_name fault)
{
    return fault_names[fault];
}

const char *name_of_status(int status)
{
    switch (status) {
#define NAME(name)                                                                                                     \
    case IBV_WC_##name:                                                                                                \
        return #name;
        STATUS_NAMES(NAME)
#undef NAME
    default:
        return status == STATUS_NOTHING ? "NOTHING" : "OTHER";
    }
}

const char *name_of_state(int state)
{
    switch (state) {
#define NAME(name)                                                                                                     \
    case IBV_QPS_##name:                                                                                               \
        return #name;
        STATE_NAMES(NAME)
#undef NAME
    default:
        return "GONE";
    }
}

const char *name_of_event(int event)
{
    switch (event) {
#define NAME(name)                                                                                                     \
    case IBV_EVENT_##name:                                                                                             \
        return #name;
        EVENT_NAMES(NAME)
#undef NAME
    default:
        return event == EVENT_NONE ? "NONE" : "OTHER";
    }
}

static const char introduction[] =
    "# What every fault does\n"
    "\n"
    "One row for each queue pair type, operation and fault: how the work request of the requester ends, how the "
    "receive\n"
    "that waits at the responder ends, in which states that leaves the two queue pairs, and which asynchronous event "
    "the\n"
    "responder gets. The numbers are the reasons in `vendor_err`; `softverbs explain NUMBER` and [reasons](reasons.md) "
    "say what they mean, and "
    "so\n"
    "does the list at the end. Every row is a test that runs over each kind of link.\n"
    "\n"
    "A receive that *waits* was not touched: the next message takes it. A queue pair that is *gone* was destroyed "
    "before.\n"
    "\n"
    "*This page is generated from `tests/api/errors/error_matrix.def`: `api_error_matrix --page`.*\n";

static void print_status(FILE *out, int status, enum reason reason)
{
    if (status == STATUS_NOTHING)
        fputs(" waits |", out);
    else if (reason)
        fprintf(out, " %s (%d) |", name_of_status(status), reason);
    else
        fprintf(out, " %s |", name_of_status(status));
}

static void print_row(FILE *out, const struct row *row)
{
    fprintf(out, "| %s | %s |", name_of_operation(row->operation), faults[row->fault].sentence);
    print_status(out, row->requester, row->requester_reason);
    print_status(out, row->responder, row->responder_reason);
    fprintf(out, " %s, %s | %s |\n", name_of_state(row->requester_state),
            row->responder_state == STATE_GONE ? "gone" : name_of_state(row->responder_state),
            row->event == EVENT_NONE ? "" : name_of_event(row->event));
}

static void print_type(FILE *out, enum ibv_qp_type type)
{
    fprintf(out, "\n## %s\n\n", name_of_type(type));
    fputs("| operation | fault | requester | responder's receive | states after | event |\n", out);
    fputs("|---|---|---|---|---|---|\n", out);
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].type == type)
            print_row(out, &rows[i]);
}

static void print_reason(FILE *out, enum reason number, const char *sentence)
{
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].requester_reason == number || rows[i].responder_reason == number) {
            fprintf(out, "| %d | %s |\n", number, sentence);
            return;
        }
}

char *matrix_page(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    fputs(introduction, out);
    print_type(out, IBV_QPT_RC);
    print_type(out, IBV_QPT_UC);
    print_type(out, IBV_QPT_UD);
    fputs("\n## Reasons\n\n| number | meaning |\n|---|---|\n", out);
#define REASON(number, name, sentence) print_reason(out, REASON_##name, sentence);
#include "diag/diag.def"
#undef REASON
    fclose(out);
    return text;
}
