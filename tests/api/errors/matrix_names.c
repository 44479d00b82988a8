/* Names of the table's values. */
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
