/* The page as the build made it of tools/draw/page/: the text before the title, before the data, and after the data. */
#pragma once

#include <stddef.h>

extern const char page_before_title[], page_before_data[], page_after_data[];
extern const size_t page_before_title_length, page_before_data_length, page_after_data_length;
