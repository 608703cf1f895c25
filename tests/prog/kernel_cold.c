/*
 * kernel_cold FILE: reads a byte of each page of a mapped file whose pages are not in memory, computes on it, and says how long the slowest
 * look took and how many looks took 50 ms and more.
 */
#include "prog.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
	MUST(argc == 2);
	int fd = open(argv[1], O_RDONLY);
	off_t size = lseek(fd, 0, SEEK_END);
	MUST(fd >= 0 && size > 0);
	volatile char *p = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
	MUST(p != MAP_FAILED);
	uint64_t worst = 0, sum = 0;
	int slow = 0;
	for (off_t i = 0; i < size; i += 4096) {
		uint64_t t0 = now_ns();
		sum += (uint64_t)p[i];
		uint64_t ns = now_ns() - t0;
		worst = ns > worst ? ns : worst;
		slow += ns >= 50000000;
	}
	printf("TRUTH worst_ms=%lu slow=%d pages=%ld sum=%lu\n", (unsigned long)(worst / 1000000), slow,
	       (long)(size / 4096), (unsigned long)sum);
	return 0;
}
