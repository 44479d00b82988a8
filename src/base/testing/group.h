/* The main function of a program of unit tests. Include it after <cmocka.h>. */
#pragma once

/* Runs each of these functions as a test. The program ends with the number of failures. */
#define TESTS(...) TESTS_OF(cmocka_unit_test, __VA_ARGS__)

/* Likewise, where the macro `test` makes the entry of a function, with its set-up and teardown. */
#define TESTS_OF(test, ...)                                                                                            \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const struct CMUnitTest tests[] = {GROUP_EACH(test, __VA_ARGS__)};                                             \
        return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);                                               \
    }

/* A macro is not expanded within itself, so each step leaves the next one's name, which a further scan expands; there
 * are scans for 120 functions. */
#define GROUP_EACH(test, ...) GROUP_SCAN(GROUP_STEP(test, __VA_ARGS__))
#define GROUP_STEP(test, first, ...) test(first), __VA_OPT__(GROUP_LATER GROUP_PARENTHESES(test, __VA_ARGS__))
#define GROUP_LATER() GROUP_STEP
#define GROUP_PARENTHESES ()
#define GROUP_SCAN(...) GROUP_SCAN3(GROUP_SCAN3(GROUP_SCAN3(__VA_ARGS__)))
#define GROUP_SCAN3(...) GROUP_SCAN2(GROUP_SCAN2(GROUP_SCAN2(__VA_ARGS__)))
#define GROUP_SCAN2(...) GROUP_SCAN1(GROUP_SCAN1(GROUP_SCAN1(__VA_ARGS__)))
#define GROUP_SCAN1(...) GROUP_SCAN0(GROUP_SCAN0(GROUP_SCAN0(__VA_ARGS__)))
#define GROUP_SCAN0(...) __VA_ARGS__
