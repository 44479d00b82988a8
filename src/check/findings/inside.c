#include "check/findings/inside.h"

_Thread_local unsigned inside_checker __attribute__((tls_model("initial-exec")));
