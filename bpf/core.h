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
typedef _Bool bool;

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_F_NO_PREALLOC = 1,
	BPF_F_USER_STACK = 256,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct pid_namespace;
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	unsigned int level;
	struct upid numbers[1];
};
struct rq {
	__u64 clock;
	unsigned int ttwu_pending;
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
struct thread_info {
	__u32 cpu;
};
typedef struct {
	unsigned int val;
} kuid_t;
struct cred {
	kuid_t euid;
};
struct bpf_local_storage;
struct task_struct {
	struct thread_info thread_info;
	int on_cpu, exit_state;
	struct sched_entity se;
	struct sched_info sched_info;
	int pid, tgid;
	__u64 start_boottime;
	struct task_struct *group_leader, *real_parent;
	struct pid *thread_pid;
	const struct cred *cred;
	struct bpf_local_storage *bpf_storage;
	char comm[16];
};
struct gendisk {
	int major, first_minor;
};
struct request_queue {
	struct gendisk *disk;
};
struct request {
	struct request_queue *q;
	unsigned int cmd_flags, __data_len;
	__u64 __sector;
};
struct pt_regs {
	unsigned long orig_ax, di, si, dx, ip, sp;
};
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task {
	union {
		struct bpf_iter_meta *meta;
	};
	union {
		struct task_struct *task;
	};
};
#pragma clang attribute pop

#endif
