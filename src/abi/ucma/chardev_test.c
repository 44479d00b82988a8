/* The kernel's answer to the question for its rdma_cm device, recorded on Linux 6.1, is read to the bit; an answer that
 * is cut off, changed or another one gives no number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "abi/ucma/chardev.h"
#include "base/testing/group.h"

enum { LENGTH = 52, TYPE_AT = 4, ATTRIBUTE_AT = 16 };

static const uint8_t recorded[LENGTH] = {
    0x34, 0x00, 0x00, 0x00, 0x0f, 0x14, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0xcc, 0x00, 0x00, 0x00, 0x0c, 0x00,
    0x48, 0x00, 0x7c, 0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x00, 0x47, 0x00, 0x04, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x0c, 0x00, 0x46, 0x00, 'r',  'd',  'm',  'a',  '_',  'c',  'm',  0x00,
};

static void a_kernels_answer_has_the_number_of_its_device(void **state)
{
    assert_int_equal(chardev_read(recorded, LENGTH), makedev(10, 124));
}

static void what_is_cut_off_is_no_number(void **state)
{
    for (size_t length = 0; length < LENGTH; length++) {
        uint8_t *exact = malloc(length + 1);
        assert_non_null(exact);
        memcpy(exact, recorded, length);
        assert_int_equal(chardev_read(exact, length), 0);
        free(exact);
    }
}

static void another_answer_is_no_number(void **state)
{
    uint8_t changed[LENGTH];
    memcpy(changed, recorded, LENGTH);
    changed[TYPE_AT] = 2; /* NLMSG_ERROR, with the other byte */
    changed[TYPE_AT + 1] = 0;
    assert_int_equal(chardev_read(changed, LENGTH), 0);
    memcpy(changed, recorded, LENGTH);
    changed[ATTRIBUTE_AT] = 0; /* an attribute of no length, which must not be looked at for ever */
    assert_int_equal(chardev_read(changed, LENGTH), 0);
}

TESTS(a_kernels_answer_has_the_number_of_its_device,
      what_is_cut_off_is_no_number,
      another_answer_is_no_number)
