/* Looking up names: the sockets and polls inside are libc's own, so the outer call is all there is to see. */
#include "hook.h"

/* What the calls answer, as errno numbers: the answer of the lookup is no errno of its own. */
static d9_i32 gai_result(int r)
{
	switch (r) {
	case 0:
		return 0;
	case EAI_SYSTEM:
		return -errno;
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_NONAME:
	case EAI_NODATA:
		return -ENOENT;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_OVERFLOW:
		return -EOVERFLOW;
	default:
		return -EINVAL;
	}
}
static d9_i32 host_result(const struct hostent *h, int herr)
{
	if (h)
		return 0;
	return herr == HOST_NOT_FOUND || herr == NO_DATA ? -ENOENT : herr == TRY_AGAIN ? -EAGAIN : -EIO;
}
/* The _r forms return an error number, or 0 and no host. */
#define HOST_RESULT_R (d9_r ? -d9_r : *ret ? 0 : host_result(NULL, *herr))

D9_WRAP(int, getaddrinfo,
	(const char *restrict node, const char *restrict service, const struct addrinfo *restrict hints,
	 struct addrinfo **restrict ret),
	(node, service, hints, ret), -1, gai_result(d9_r))
D9_WRAP(int, getnameinfo,
	(const struct sockaddr *restrict a, socklen_t n, char *restrict node, socklen_t nn, char *restrict service,
	 socklen_t ns, int flags),
	(a, n, node, nn, service, ns, flags), -1, gai_result(d9_r))
D9_WRAP(struct hostent *, gethostbyname, (const char *node), (node), -1, host_result(d9_r, h_errno))
D9_WRAP(struct hostent *, gethostbyname2, (const char *node, int family), (node, family), -1,
	host_result(d9_r, h_errno))
D9_WRAP(struct hostent *, gethostbyaddr, (const void *a, socklen_t n, int family), (a, n, family), -1,
	host_result(d9_r, h_errno))
D9_WRAP(int, gethostbyname_r,
	(const char *restrict node, struct hostent *restrict h, char *restrict p, size_t n,
	 struct hostent **restrict ret, int *restrict herr),
	(node, h, p, n, ret, herr), -1, HOST_RESULT_R)
D9_WRAP(int, gethostbyname2_r,
	(const char *restrict node, int family, struct hostent *restrict h, char *restrict p, size_t n,
	 struct hostent **restrict ret, int *restrict herr),
	(node, family, h, p, n, ret, herr), -1, HOST_RESULT_R)
D9_WRAP(int, gethostbyaddr_r,
	(const void *restrict a, socklen_t an, int family, struct hostent *restrict h, char *restrict p, size_t n,
	 struct hostent **restrict ret, int *restrict herr),
	(a, an, family, h, p, n, ret, herr), -1, HOST_RESULT_R)
