/* The door of shim/: all that interpose/ may include. */
#ifndef D9_SHIM_SHIM_H
#define D9_SHIM_SHIM_H
#include "arena.h"
#include "calls.h"
#include "exec_env.h"
#include "lifecycle.h"
#include "limits.h"
#include "sys.h"
#include "writer_thread.h"

#endif
