/* busy: computes until it is ended; load beside a test.  Ends by itself after two minutes. */
#include <unistd.h>

int main(void)
{
	alarm(120);
	for (volatile unsigned long n = 0;; n++)
		;
}
