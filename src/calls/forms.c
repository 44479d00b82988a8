#include "calls/forms.h"

void (*calls_form_mistaken)(const struct calls_form_mistake *);
