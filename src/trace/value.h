/* Arguments and results of calls as text: objects by kind and number, flags and states by their names, structs by the
 * members that matter. */
#pragma once

#include <infiniband/efadv.h>
#include <infiniband/verbs.h>
#include <stdint.h>

#include "calls/subject.h"
#include "trace/text.h"

/* Writes an argument; `name` is the name of the parameter in verbs.def. Memory that the argument points to is read, as
 * the library is about to read it. */
typedef void value_writer(struct trace_line *, const char *name, uint64_t value);

value_writer value_signed, value_unsigned, value_pointer;

/* The structs whose members are shown. The writer is value_ with the name of the struct. */
#define VALUE_STRUCTS(STRUCT)                                                                                          \
    STRUCT(ibv_recv_wr)                                                                                                \
    STRUCT(ibv_qp_init_attr)                                                                                           \
    STRUCT(ibv_qp_init_attr_ex)                                                                                        \
    STRUCT(ibv_srq_init_attr)                                                                                          \
    STRUCT(ibv_srq_init_attr_ex)                                                                                       \
    STRUCT(ibv_srq_attr)                                                                                               \
    STRUCT(ibv_cq_init_attr_ex)                                                                                        \
    STRUCT(ibv_ah_attr)                                                                                                \
    STRUCT(efadv_qp_init_attr)                                                                                         \
    STRUCT(efadv_cq_init_attr)                                                                                         \
    STRUCT(efadv_ah_attr)                                                                                              \
    STRUCT(efadv_sq_depth_attr)                                                                                        \
    STRUCT(efadv_rq_depth_attr)
#define VALUE_STRUCT(type) value_writer value_##type;
VALUE_STRUCTS(VALUE_STRUCT)
#undef VALUE_STRUCT
value_writer value_gid;

/* The writer of an argument that is no object, by its type. */
#define VALUE_STRUCT(type) struct type * : value_##type, const struct type * : value_##type,
#define VALUE_WRITER(argument)                                                                                         \
    _Generic((argument), VALUE_STRUCTS(VALUE_STRUCT) union ibv_gid *: value_gid, const union ibv_gid *: value_gid,     \
             int: value_signed, long: value_signed, unsigned: value_unsigned, unsigned long: value_unsigned,           \
             unsigned short: value_unsigned, unsigned char: value_unsigned, default: value_pointer)

/* Adds "qp 0x12", or what the writer makes of the value. */
void value_add(struct trace_line *, const char *name, struct calls_subject, value_writer *, uint64_t value);

/* Adds TRACE_NEXT, the name, "=" and the value for each of up to eight arguments. */
#define VALUE_ARGUMENT(line, argument)                                                                                 \
    value_argument(line, #argument, CALLS_SUBJECT_IF(argument), VALUE_WRITER(argument),                                \
                   (uint64_t)(uintptr_t)(argument));
void value_argument(struct trace_line *, const char *name, struct calls_subject, value_writer *, uint64_t value);

#define VALUE_ARGUMENTS(line, ...) VALUE_COUNTED(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1)(line, __VA_ARGS__)
#define VALUE_COUNTED(a, b, c, d, e, f, g, h, count, ...) VALUE_JOINED(count)
#define VALUE_JOINED(count) VALUE_OF_##count
#define VALUE_OF_1(line, a) VALUE_ARGUMENT(line, a)
#define VALUE_OF_2(line, a, ...) VALUE_ARGUMENT(line, a) VALUE_OF_1(line, __VA_ARGS__)
#define VALUE_OF_3(line, a, ...) VALUE_ARGUMENT(line, a) VALUE_OF_2(line, __VA_ARGS__)
#define VALUE_OF_4(line, a, ...) VALUE_ARGUMENT(line, a) VALUE_OF_3(line, __VA_ARGS__)
#define VALUE_OF_5(line, a, ...) VALUE_ARGUMENT(line, a) VALUE_OF_4(line, __VA_ARGS__)
#define VALUE_OF_6(line, a, ...) VALUE_ARGUMENT(line, a) VALUE_OF_5(line, __VA_ARGS__)
#define VALUE_OF_7(line, a, ...) VALUE_ARGUMENT(line, a) VALUE_OF_6(line, __VA_ARGS__)
#define VALUE_OF_8(line, a, ...) VALUE_ARGUMENT(line, a) VALUE_OF_7(line, __VA_ARGS__)

/* Adds the entries that a successful ibv_poll_cq has stored: "[{wr_id=7, status=IBV_WC_SUCCESS, ...}, ...]". */
void value_completions(struct trace_line *, const struct ibv_wc *, int count);

/* Adds "{wr_id=7, opcode=IBV_WR_SEND, ...}"; `datagrams`: with the receiver of each. */
void value_send_requests(struct trace_line *, const struct ibv_send_wr *, bool datagrams);

/* Adds "EFADV_QP_DRIVER_TYPE_SRD", or the number. */
void value_driver_qp_type(struct trace_line *, uint32_t type);

/* Adds "{max_sq_wr=4096, ...}", of a struct of `inlen` bytes. */
void value_efa_device(struct trace_line *, const struct efadv_device_attr *, uint32_t inlen);

/* Adds "{qp_state=INIT, ...}": the members that the mask names. */
void value_qp_attributes(struct trace_line *, const struct ibv_qp_attr *, unsigned mask);
