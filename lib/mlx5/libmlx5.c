/* libmlx5.so.1 as programs find it: libibverbs does the calls, so that they pass its layers. What is not built has its
 * name here, as a program that is linked to one node of the library needs all names of it to start. */
#include "calls/mlx5_table.h"

#include "base/result.h"

#define EXPORT __attribute__((visibility("default")))

#define RETURN_code return
#define RETURN_pointer return
#define RETURN_plain return
#define RETURN_nothing

#define VENDOR(answer, type, name, parameters, arguments)                                                              \
    type name parameters;                                                                                              \
    EXPORT type name parameters                                                                                        \
    {                                                                                                                  \
        RETURN_##answer softverbs_mlx5_calls()->name arguments;                                                        \
    }
#define PART(type, name, parameters, arguments) VENDOR(plain, type, name, parameters, arguments)
#include "calls/mlx5.def"

/* Defined without parameters and called with some, as the stubs of libibverbs are (abi/stub.h). */
#define TYPE_code int
#define TYPE_minus long
#define TYPE_pointer void *
#define TYPE_nothing void
#define ABSENT(answer, name, why)                                                                                      \
    TYPE_##answer name(void);                                                                                          \
    EXPORT TYPE_##answer name(void)                                                                                    \
    {                                                                                                                  \
        RESULT_REFUSE_##answer(softverbs_mlx5_calls()->refuse(#name));                                                 \
    }
#include "calls/mlx5.def"

/* The older node of this function. The newest one stays only with a weak symbol (abi/version.h). */
#pragma weak mlx5dv_init_obj
EXPORT extern __typeof__(mlx5dv_init_obj) mlx5dv_init_obj__1_0 __attribute__((alias("mlx5dv_init_obj"), used));
__asm__(".symver mlx5dv_init_obj__1_0, mlx5dv_init_obj@MLX5_1.0");
