/* See kernel_stack.h. */
#include "kernel_stack.h"
#include "clean.h"

bool d9_kernel_frame_next(const struct d9_bytes *stack, size_t *at, const char **ret, size_t *ret_n)
{
	if (stack->kind != D9_TAIL_KERNEL)
		return false;
	while (*at < stack->n) {
		const char *line = (const char *)stack->p + *at, *eol = memchr(line, '\n', stack->n - *at);
		size_t n = eol ? (size_t)(eol - line) : stack->n - *at;
		*at += n + (eol != NULL);
		size_t name = 0;
		while (name < n && line[name] && line[name] != '+' && line[name] != '.')
			name++;
		if (!name)
			continue;
		*ret = line;
		*ret_n = name;
		return true;
	}
	return false;
}

static bool is(const char *name, size_t n, const char *pattern)
{
	size_t len = strlen(pattern);
	if (len && pattern[len - 1] == '*')
		return n >= len - 1 && !memcmp(name, pattern, len - 1);
	return n == len && !memcmp(name, pattern, n);
}

static bool is_one_of(const char *name, size_t n, const char *const *patterns)
{
	for (; *patterns; patterns++)
		if (is(name, n, *patterns))
			return true;
	return false;
}

bool d9_kernel_stack_has(const struct d9_bytes *stack, const char *const *names)
{
	const char *name;
	size_t at = 0, n;
	while (d9_kernel_frame_next(stack, &at, &name, &n))
		if (is_one_of(name, n, names))
			return true;
	return false;
}

/* How a thread waits, and not for what. */
static const char *const plumbing[] = {"__schedule",
				       "schedule",
				       "schedule_*",
				       "preempt_schedule*",
				       "__cond_resched",
				       "io_schedule*",
				       "bit_wait*",
				       "__wait_on_bit*",
				       "out_of_line_wait_on_bit*",
				       "__wait_for_common",
				       "wait_for_common*",
				       "wait_for_completion*",
				       "__wait_for_completion*",
				       "__wait_rcu_gp",
				       "folio_wait_bit*",
				       "do_wait_for_common",
				       "wait_woken",
				       "__switch_to*",
				       "context_switch",
				       "?",
				       NULL};

static d9_u32 intern(struct d9_kernel_places *p, const char *name, size_t n)
{
	d9_u64 key = d9_map_bytes(D9_MAP_NO_BYTES, name, n);
	d9_u32 i = d9_map_get(&p->by_hash, key);
	if (i != D9_MAP_EMPTY)
		return i;
	d9_vec_push(&p->names, d9_clean_copy(name, n));
	d9_map_put(&p->by_hash, key, (d9_u32)p->names.n - 1);
	return (d9_u32)p->names.n - 1;
}

d9_u32 d9_kernel_place(struct d9_kernel_places *p, const struct d9_trace *t, d9_u32 tail)
{
	d9_u32 had = d9_map_get(&p->by_tail, tail);
	if (had != D9_MAP_EMPTY)
		return had;
	if (!p->names.n)
		intern(p, "", 0);
	const struct d9_bytes *stack = &t->tails.v[tail];
	const char *name, *first = NULL;
	size_t at = 0, n, n_first = 0;
	d9_u32 place = 0;
	while (!place && d9_kernel_frame_next(stack, &at, &name, &n)) {
		if (!first)
			first = name, n_first = n;
		if (!is_one_of(name, n, plumbing))
			place = intern(p, name, n);
	}
	if (!place && first)
		place = intern(p, first, n_first);
	d9_map_put(&p->by_tail, tail, place);
	return place;
}

/* ---- what a stack says ---------------------------------------------------------------------------------------------- */

static const char *const storage[] = {"io_schedule*",   "blkdev_issue_flush*", "submit_bio_wait*",
				      "folio_wait_*",   "wait_on_page_*",      "__wait_on_buffer",
				      "jbd2_*",         "rq_qos_wait",         "wbt_wait",
				      "blk_mq_get_tag", "blk_mq_get_request",  "balance_dirty_pages*",
				      "__iomap_dio_rw", "xfs_log_force*",      "xlog_wait*",
				      "btrfs_wait_*",   "nfs_wait_*",          NULL};
static const char *const faults[] = {"filemap_fault",
				     "handle_mm_fault",
				     "__handle_mm_fault",
				     "do_swap_page",
				     "do_user_addr_fault",
				     "exc_page_fault",
				     "asm_exc_page_fault",
				     "do_anonymous_page",
				     "__do_fault",
				     "handle_userfault",
				     NULL};
static const char *const fd_table[] = {"expand_files", NULL}, *const rcu[] = {"synchronize_rcu*", NULL};

unsigned d9_model_kernel_says(struct d9_model *m, d9_u32 tail)
{
	if (!m->tail_says)
		m->tail_says = d9_must_alloc(m->t->tails.n, 1);
	d9_u8 *says = &m->tail_says[tail];
	const struct d9_bytes *stack = &m->t->tails.v[tail];
	if (!*says)
		*says = (d9_u8)(D9_SAYS_ASKED | (d9_kernel_stack_has(stack, storage) ? D9_SAYS_STORAGE : 0) |
				(d9_kernel_stack_has(stack, faults) ? D9_SAYS_FAULT : 0) |
				(d9_kernel_stack_has(stack, fd_table) ? D9_SAYS_FD_TABLE : 0) |
				(d9_kernel_stack_has(stack, rcu) ? D9_SAYS_RCU : 0));
	return *says;
}

void d9_kernel_places_fini(struct d9_kernel_places *p)
{
	for (size_t i = 0; i < p->names.n; i++)
		free(p->names.v[i]);
	d9_vec_free(&p->names);
	d9_map_free(&p->by_hash);
	d9_map_free(&p->by_tail);
}
