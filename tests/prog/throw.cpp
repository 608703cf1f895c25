/* Exceptions and the forced unwinding of cancellation through frames of the recorder and of libc. */
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <stdexcept>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

static volatile int destroyed, tid;
struct guard {
	~guard() { destroyed = destroyed + 1; }
};
static void fail(const char *what)
{
	std::printf("WRONG %s\n", what);
	std::exit(1);
}

static int compare(const void *, const void *) { throw std::runtime_error("from a callback"); }

static void *thrower(void *)
{
	try {
		guard g;
		poll(nullptr, 0, 1);
		throw std::runtime_error("in a thread");
	} catch (const std::runtime_error &) {
		return nullptr;
	}
}

static void *waiter(void *)
{
	guard g;
	tid = (int)syscall(SYS_gettid);
	poll(nullptr, 0, -1);
	return nullptr;
}

static void handler(int) { throw std::runtime_error("from a handler"); }

int main()
{
	int data[4] = {3, 1, 2, 0};
	try {
		guard g;
		std::qsort(data, 4, sizeof(int), compare);
		fail("no exception came out of qsort");
	} catch (const std::runtime_error &) {
	}
	pthread_t t;
	void *end;
	if (pthread_create(&t, nullptr, thrower, nullptr) || pthread_join(t, &end) || end)
		fail("an exception in a thread");
	if (pthread_create(&t, nullptr, waiter, nullptr))
		fail("no thread");
	while (!tid)
		;
	if (pthread_cancel(t) || pthread_join(t, &end) || end != PTHREAD_CANCELED)
		fail("cancellation");
	if (destroyed != 3)
		fail("a destructor did not run");
	/* An exception thrown by a handler that interrupted a hooked wait: through the wait's frames. */
	struct sigaction sa = {};
	sa.sa_handler = handler;
	sigaction(SIGALRM, &sa, nullptr);
	try {
		guard g;
		ualarm(20000, 0);
		poll(nullptr, 0, -1);
		fail("poll came back");
	} catch (const std::runtime_error &) {
	}
	if (destroyed != 4)
		fail("the destructor did not run");
	std::mutex m;
	std::lock_guard<std::mutex> lock(m);
	poll(nullptr, 0, 5);
	std::puts("well");
	return 0;
}
