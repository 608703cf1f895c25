/* The one function of a fuzzer. */
#ifndef D9_TESTS_FUZZ_H
#define D9_TESTS_FUZZ_H
#include <stddef.h>
#include <stdint.h>

__attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
