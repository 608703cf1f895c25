/*
 * KINDs: what `d9 hist` and `d9 spans` can be asked for.  The first D9_N_FAMILIES are the families of
 * hooks; the rest is what the model makes of them.
 */
#ifndef D9_CLI_KINDS_H
#define D9_CLI_KINDS_H
#include "format/families.h"

#include <stdbool.h>

enum d9_kind {
	D9_KIND_PARK = D9_N_FAMILIES, /* at the place where a worker waits for work */
	D9_KIND_POLL_SPAN,            /* between two parks of a worker */
	D9_KIND_WAKE,                 /* from the waker's deed to the waiter's return */
	D9_KIND_QUEUE,
	D9_KIND_RUNQ,   /* could run and had no CPU */
	D9_KIND_OFFCPU, /* waited in the kernel, and for a CPU after that */
	D9_KIND_OTHER,  /* a family that this build does not know */
	D9_N_KINDS
};

/* What a wait is to the model. */
enum d9_class {
	D9_CLASS_EVENT,  /* epoll, poll, select: where event loops park */
	D9_CLASS_SIGNAL, /* cond, sem, futex: where pools park, and how locks are built */
	D9_CLASS_LOCK,   /* mutex, rwlock: never a place to park */
	D9_CLASS_SLEEP,  /* sleep, join, waitpid: never a place to park where there is an event wait */
	D9_CLASS_IO,     /* everything else that can take long */
	D9_CLASS_NONE,   /* no wait: exit, thread creation, identity */
};

const char *d9_kind_name(unsigned kind);
/* -1 if no kind has this name. */
int d9_kind_find(const char *name);
enum d9_class d9_kind_class(unsigned kind);

#endif
