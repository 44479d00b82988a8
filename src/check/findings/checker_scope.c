#include "check/findings/checker_scope.h"

_Thread_local unsigned inside_checker __attribute__((tls_model("initial-exec")));
