/*
 * The few libc functions the recorder itself needs, and what it must know of its surroundings: interpose/ hands over the real
 * ones at start, so that nothing in shim/ reaches a hook.  Any function may be NULL (an old libc without libpthread loaded).
 */
#ifndef D9_SHIM_REAL_H
#define D9_SHIM_REAL_H
#include <pthread.h>
#include <stdbool.h>

struct d9_shim_real {
	int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int (*pthread_attr_init)(pthread_attr_t *);
	int (*pthread_attr_setstacksize)(pthread_attr_t *, size_t);
	int (*pthread_attr_setdetachstate)(pthread_attr_t *, int);
	int (*pthread_attr_destroy)(pthread_attr_t *);
	void (*pthread_testcancel)(void); /* part of what the hooks of semaphores do */
	/* not libc's malloc: its locks may be held by a thread that sleeps or waits for a signal of another, and to make a thread
	 * is to allocate */
	bool foreign_malloc;
	const char *library; /* the name that the loader has for us */
};

#endif
