/*
 * A program without liburing.  It must not see one because of the recorder; then plugins bring two libraries of that kind, one at a
 * time, both at once, again at another place: a call always comes to the one that its plugin was linked with.  None of it is seen.
 */
#include "prog.h"
#include "uring_plugin.h"

#include <dlfcn.h>

#pragma weak io_uring_submit
#pragma weak __io_uring_get_cqe
extern int io_uring_submit(void *ring);
extern int __io_uring_get_cqe(void *ring, void **cqe, unsigned submit, unsigned n, void *mask);

static int ring[64];

struct plugin {
	void *handle;
	int library;
};

static void looks_for_liburing(void)
{
	static const struct {
		const char *name, *version;
	} asked[] = {{"io_uring_submit", "LIBURING_2.0"},
		     {"__io_uring_get_cqe", "LIBURING_2.0"},
		     {"io_uring_submit_and_wait_timeout", "LIBURING_2.2"},
		     {"io_uring_enter", "LIBURING_2.3"},
		     {"io_uring_submit_and_wait_reg", "LIBURING_2.9"}};
	int (*volatile submit)(void *) = io_uring_submit; /* a weak reference */
	int (*volatile get)(void *, void **, unsigned, unsigned, void *) = __io_uring_get_cqe;
	MUST(!submit && !get);
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		MUST(!dlsym(RTLD_DEFAULT, asked[i].name) && !dlsym(RTLD_NEXT, asked[i].name) && dlerror());
		MUST(!dlvsym(RTLD_DEFAULT, asked[i].name, asked[i].version) && dlerror());
	}
}

static struct plugin open_plugin(int library)
{
	struct plugin p = {dlopen(library == 1 ? "uring_plugin_a.so" : "uring_plugin_b.so", RTLD_NOW | RTLD_LOCAL),
			   library};
	MUST(p.handle);
	return p;
}

static void call(const struct plugin *p, const char *function, int sum)
{
	int (*f)(void *) = (int (*)(void *))dlsym(p->handle, function);
	MUST(f);
	MUST(f(ring) == p->library * 100 + sum);
}
#define CALL(p, name) call(p, "plugin_" #name, SUM_##name)
static void use(const struct plugin *p)
{
	CALL(p, submit);
	CALL(p, wait_cqe_timeout);
	CALL(p, wait_cqes_min_timeout);
	CALL(p, submit_and_wait_min_timeout);
	CALL(p, submit_and_wait_reg);
}

int main(void)
{
	ring[RING_FD_AT] = RING_FD;
	looks_for_liburing();
	for (int i = 0; i < 4; i++) {
		struct plugin one =
			open_plugin(1 + i % 2); /* each time another one is the first that the loader lists */
		use(&one);
		struct plugin other = open_plugin(2 - i % 2);
		use(&other);
		use(&one);
		MUST(!dlclose(one.handle));
		use(&other);
		MUST(!dlclose(other.handle));
	}
	looks_for_liburing();
	before();
	usleep(1000);
	after();
	expect("usleep", 0, "%s", "");
	return 0;
}
