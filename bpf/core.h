/*
 * The few kernel types that the kernel's side touches, as CO-RE sees them: libbpf relocates each field by name against the
 * running kernel's BTF, so order and offsets here mean nothing.  Stands in for a generated vmlinux.h of several megabytes.
 */
#ifndef D9_BPF_CORE_H
#define D9_BPF_CORE_H
#include "format/types.h"

typedef d9_u8 __u8;
typedef d9_u16 __u16;
typedef d9_u32 __u32;
typedef d9_u64 __u64;
typedef d9_i32 __s32;
typedef d9_i64 __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
	unsigned int inum;
};
struct pid_namespace {
	struct ns_common ns;
};
struct rq {
	__u64 clock;
};
struct cfs_rq {
	struct rq *rq;
};
struct sched_entity {
	struct cfs_rq *cfs_rq;
};
struct sched_info {
	unsigned long pcount;
	unsigned long long run_delay, last_arrival, last_queued;
};
struct task_struct {
	int on_cpu;
	struct sched_entity se;
	struct sched_info sched_info;
	int pid, tgid;
	struct task_struct *group_leader;
	char comm[16];
};
#pragma clang attribute pop

#endif
