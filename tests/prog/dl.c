/* Modules that are opened as usual, past the hooks, and in a namespace of their own: each must come, whatever the recorder makes of it. */
#include "prog.h"

#include <dlfcn.h>

int main(void)
{
	void *usual = dlopen("libm.so.6", RTLD_NOW);
	void *deep = dlopen("libresolv.so.2", RTLD_NOW | RTLD_DEEPBIND);
	void *apart = dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
	MUST(usual && deep && apart && usual != apart);
	MUST(dlopen("libresolv.so.2", RTLD_NOW | RTLD_DEEPBIND) == deep); /* told once */
	MUST(dlopen(NULL, RTLD_NOW | RTLD_DEEPBIND) && !dlopen("no-such-module.so", RTLD_NOW) && dlerror());
	usleep(1000);
	return 0;
}
