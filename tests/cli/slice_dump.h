/*
 * For programs that are unwound by test_symbols: writes the program's own mappings and a slice of its
 * stack, as the recorder would have recorded them, to the file named by $DUMP.
 */
#ifndef D9_TESTS_SLICE_DUMP_H
#define D9_TESTS_SLICE_DUMP_H

void dump_self(void);
_Noreturn void dump_self_and_exit(void);

#endif
