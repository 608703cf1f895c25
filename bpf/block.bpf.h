/*
 * Requests to disks that targets make.  One is known by its address from when its maker begins it (or, on kernels before 6.5, gives
 * it to the driver itself) until it is done, which happens in whatever context the disk's interrupt comes upon.
 */
#ifndef D9_BPF_BLOCK_BPF_H
#define D9_BPF_BLOCK_BPF_H
#include "target.bpf.h"

#define OP_MASK 0xffu
#define REQUESTS_MAX 4096

/* blk_status_t, as the kernel numbers it, and what it stands for */
#define STS_NOTSUPP 1
#define STS_TIMEOUT 2
#define STS_NOSPC 3
#define E_IO 5
#define E_NOSPC 28
#define E_OPNOTSUPP 95
#define E_TIMEDOUT 110

struct request_of {
	d9_u32 id; /* whose */
	d9_i32 tid;
	d9_u64 issued; /* 0: not yet */
	d9_u64 sector;
	d9_u32 bytes, dev, op, pad;
	char name[D9_K_NAME];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH); /* one whose end is not told of goes some time */
	__uint(max_entries, REQUESTS_MAX);
	__type(key, d9_u64);
	__type(value, struct request_of);
} requests SEC(".maps");

static __always_inline void fill_request(struct request_of *q, struct request *rq)
{
	q->issued = bpf_ktime_get_ns();
	q->sector = BPF_CORE_READ(rq, __sector);
	q->bytes = BPF_CORE_READ(rq, __data_len);
	q->op = BPF_CORE_READ(rq, cmd_flags) & OP_MASK;
	struct gendisk *disk = BPF_CORE_READ(rq, q, disk);
	q->dev = disk ? (d9_u32)BPF_CORE_READ(disk, major) << 20 | (d9_u32)BPF_CORE_READ(disk, first_minor) : 0;
}

static __always_inline void own_request(struct request *rq, struct request_of *ret)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct thread *v = target(p);
	d9_u64 key = (d9_u64)rq;
	if (!v)
		return;
	ret->id = v->id;
	ret->tid = v->tid;
	bpf_probe_read_kernel(ret->name, sizeof(ret->name), p->comm);
	bpf_map_update_elem(&requests, &key, ret, 0);
}

SEC("tp_btf/block_io_start")
int BPF_PROG(d9_block_start, struct request *rq)
{
	struct request_of q = {0};
	own_request(rq, &q);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(d9_block_issue, struct request *rq)
{
	d9_u64 key = (d9_u64)rq;
	struct request_of fresh = {0}, *q = bpf_map_lookup_elem(&requests, &key);
	if (q && !q->issued) {
		fill_request(q, rq);
	} else if (!q) {
		fill_request(&fresh, rq);
		own_request(rq, &fresh);
	}
	return 0;
}

static __always_inline d9_i32 error_of(d9_u32 status)
{
	switch (status) {
	case 0:
		return 0;
	case STS_NOTSUPP:
		return -E_OPNOTSUPP;
	case STS_TIMEOUT:
		return -E_TIMEDOUT;
	case STS_NOSPC:
		return -E_NOSPC;
	default:
		return -E_IO;
	}
}

static __always_inline void put_request(const struct request_of *q, d9_u64 now, d9_u32 status)
{
	struct d9_k_block *r = reserve(sizeof(*r));
	if (!r)
		return;
	r->head.kind = D9_K_BLOCK;
	r->head.id = q->id;
	r->head.tid = q->tid;
	r->head.n = 0;
	__builtin_memcpy(r->head.name, q->name, sizeof(r->head.name));
	r->e.rec.t = now;
	r->e.dur = now - q->issued;
	r->e.sector = q->sector;
	r->e.bytes = q->bytes;
	r->e.dev = q->dev;
	r->e.op = q->op;
	r->e.error = error_of(status);
	bpf_ringbuf_submit(r, wake_flag());
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(d9_block_complete, struct request *rq, d9_u8 status)
{
	d9_u64 key = (d9_u64)rq, now = bpf_ktime_get_ns();
	const struct request_of *q = bpf_map_lookup_elem(&requests, &key);
	if (!q)
		return 0;
	if (q->issued && now - q->issued >= offcpu_min_ns)
		put_request(q, now, status);
	bpf_map_delete_elem(&requests, &key);
	return 0;
}

#endif
