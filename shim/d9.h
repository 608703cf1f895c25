/*
 * d9.h: what a program or a runtime may tell the recorder.  Header only, no library to link: the functions are
 * found at run time in a libd9shim.so that somebody preloaded; without one each call is a load and a branch.
 *
 *	#include <d9.h>
 *	d9_abi_get();                       // once, at start; NULL: nobody records
 *	D9_CALL(poll_begin, task, runtime, worker);
 *	...
 *	D9_CALL(poll_end, D9_POLL_PENDING);
 *
 * Every function may be called from any thread and from signal handlers, returns at once, changes no errno.  Strings are
 * copied (at most 1 KiB).  Begin and end are per thread and nest.  From other languages: dlsym(RTLD_DEFAULT, "d9_abi")
 * is the address of a struct d9_abi; check `version` and `size`.
 */
#ifndef D9_H
#define D9_H
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define D9_ABI_VERSION 1u
#define D9_NO_WORKER 0xffffffffu
#define D9_POLL_UNKNOWN 0xffffffffu /* for poll_end, where the runtime does not say */

enum { D9_POLL_PENDING = 0, D9_POLL_READY = 1, D9_POLL_CANCELLED = 2, D9_POLL_WOKEN = 3 };
enum { D9_LOG_ERROR = 1, D9_LOG_WARNING = 2, D9_LOG_INFO = 3, D9_LOG_DEBUG = 4, D9_LOG_TRACE = 5 };

struct d9_abi {
	uint32_t version, size; /* size: bytes of this struct in the library; a function beyond it does not exist */
	void (*worker_park)(uint32_t runtime, uint32_t worker); /* The calling worker has nothing to do and is about to wait. */
	void (*worker_unpark)(void); /* It has something to do again: ends worker_park. */
	void (*task_spawn)(uint64_t task, uint64_t parent, uint32_t runtime, const char *name); /* A task was made; parent 0: by no task; name may be NULL. */
	void (*poll_begin)(uint64_t task, uint32_t runtime, uint32_t worker); /* The calling thread begins to poll a task; worker D9_NO_WORKER: none. */
	void (*poll_end)(uint32_t outcome); /* It ends the poll it began last: D9_POLL_*. */
	void (*wake)(uint64_t task, uint64_t by, uint32_t runtime); /* A task was made runnable, by a task or by none (0). */
	void (*task_end)(uint64_t task, uint32_t outcome); /* A task is over: D9_POLL_READY or D9_POLL_CANCELLED. */
	void (*span_begin)(const char *name, uint64_t id); /* A stretch of work begins on this thread; id 0: none. */
	void (*span_end)(void); /* The stretch begun last on this thread ends. */
	void (*log_line)(uint32_t level, const char *text); /* A line of log: D9_LOG_*. */
	void (*counter)(const char *name, int64_t value); /* A measured value. */
	uint32_t (*event_type)(const char *name, const char *fields); /* Declares a kind of event: fields as name:type,... with u64, i64, f64, str.  Its number, or 0xffffffff. */
	void (*event)(uint32_t type, const void *data, size_t bytes); /* An event of that kind: its fields one after the other, str NUL-ended. */
};

/* The recorder's functions, or NULL.  Looks them up once; call it again after a dlopen of the recorder only. */
static inline const struct d9_abi *d9_abi_get(void)
{
	static const struct d9_abi *found;
	static int looked;
	if (!looked) {
		const struct d9_abi *a = (const struct d9_abi *)dlsym(RTLD_DEFAULT, "d9_abi");
		found = a && a->version == D9_ABI_VERSION ? a : NULL;
		looked = 1;
	}
	return found;
}

/* Calls a function if there is a recorder that has it. */
#define D9_CALL(function, ...) \
	do { \
		const struct d9_abi *d9_a_ = d9_abi_get(); \
		if (d9_a_ && d9_a_->size > offsetof(struct d9_abi, function)) \
			(void)d9_a_->function(__VA_ARGS__); \
	} while (0)

#ifdef __cplusplus
}
#endif
#endif
