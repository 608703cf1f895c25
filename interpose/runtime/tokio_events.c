/*
 * What Tokio does to its tasks becomes records: polls with their outcome, wakes, ends, and the first sight of a task.
 *
 * A poll may free its task, and another worker may run it again before the poll has come back to us.  So the task is *held* over
 * the poll: one reference more, and in bits of the state word that Tokio never uses a number that goes up with each hold.  What the
 * word says afterwards is the outcome if the number is still ours; if not, somebody polled it since, and all that is known is that it
 * was woken.  The last one to let go of the reference frees the task, as Tokio would have.
 *
 * The program's own threads run this, at any depth, within panics and signal handlers: no lock, no allocation, no system call but in a
 * thread's first event and a job's first poll.
 *
 * word           written by       read by             ordering, and what breaks without it
 * task.state     Tokio, any of us Tokio, any of us    CAS acq_rel: the outcome and the task's memory belong together
 * task_frames    its thread       its thread          depth last: a handler sees no frame that is not whole
 */
#include "tokio_dump.h"
#include "tokio_tasks.h"

#define HELD_SHIFT 56 /* how many hold it; 6 bits, below the two that Tokio takes for an overflow */
#define HELD_MAX 63u
#define NUMBER_SHIFT 40 /* of the last who came; above 2^34 references */
#define NUMBER_MASK (0x7fffull << NUMBER_SHIFT)
#define FINISHED (1ull << 55) /* it was complete when its runtime came to drop it */
#define MARKS (~0ull << NUMBER_SHIFT)
#define NO_WORKER 0xffffffffu

/* ---- holding a task ------------------------------------------------------------------------------------------ */

/* False: too many do, and the task is let alone.  *ret_state: as it was found. */
static inline bool hold(struct d9_tokio_header *task, d9_u64 *ret_state, d9_u32 *ret_number)
{
	d9_u64 was = d9_load_relaxed(&task->state), now;
	do {
		if (__builtin_expect(was >> HELD_SHIFT >= HELD_MAX, 0))
			return false;
		now = (was & ~NUMBER_MASK) | ((was + (1ull << NUMBER_SHIFT)) & NUMBER_MASK);
		now += D9_TOKIO_REFERENCE + (1ull << HELD_SHIFT);
	} while (!d9_cas_acq_rel(&task->state, &was, now));
	*ret_state = was;
	*ret_number = (d9_u32)((now & NUMBER_MASK) >> NUMBER_SHIFT);
	return true;
}

/* Returns the state as it was found, with our marks.  *ret_last: nobody else has the task, and the caller is to free it. */
static inline d9_u64 let_go(struct d9_tokio_header *task, d9_u32 *ret_number, bool *ret_last)
{
	d9_u64 was = d9_load_relaxed(&task->state), now;
	do {
		now = was - D9_TOKIO_REFERENCE - (1ull << HELD_SHIFT);
		if (!(now >> HELD_SHIFT))
			now &= ~MARKS;
	} while (!d9_cas_acq_rel(&task->state, &was, now));
	*ret_number = (d9_u32)((was & NUMBER_MASK) >> NUMBER_SHIFT);
	*ret_last = (now & ~MARKS) < D9_TOKIO_REFERENCE;
	return was;
}

/* ---- where a thread is ----------------------------------------------------------------------------------------- */

static inline struct d9_cell *entered(void)
{
	struct d9_cell *me = d9_me;
	return __builtin_expect(me && me->slot, 1) ? me : d9_enter_thread();
}
static inline bool is_on(void) { return d9_load_relaxed(d9_shim.mask) & D9_MASK(abi); }
static inline struct d9_cell *recording(void) { return is_on() ? entered() : NULL; }

/* NULL: there is no memory for them. */
static inline struct d9_task_frames *frames_of(const struct d9_cell *me)
{
	d9_u32 slot = D9_THREAD_SLOT(me->thread);
	struct d9_frames *const *piece = &d9_shim.frames[slot / D9_FRAMES_PIECE];
	if (__builtin_expect(!d9_load_acquire(piece), 0) && !d9_frames_for(slot))
		return NULL;
	struct d9_task_frames *s = &d9_load_acquire(piece)[slot % D9_FRAMES_PIECE].tasks;
	if (__builtin_expect(s->thread != me->thread + 1, 0)) { /* the slot is new to this thread */
		s->depth = 0;
		s->thread = me->thread + 1;
	}
	return s;
}

static inline const struct d9_task_frame *top(const struct d9_task_frames *s)
{
	return s && s->depth && s->of[s->depth - 1].kind != D9_TOKIO_WORKER ? &s->of[s->depth - 1] : NULL;
}

const struct d9_task_frame *d9_tokio_current(const struct d9_cell *me) { return top(frames_of(me)); }

/* For whoever looks at the session memory: the poll that the thread is in. */
static inline void show(struct d9_cell *me, const struct d9_task_frames *s)
{
	struct d9_in_poll *p = &me->slot->poll;
	const struct d9_task_frame *f = top(s);
	d9_store_release(&p->active, 0);
	if (!f)
		return;
	p->t0 = f->t0;
	p->task = f->id;
	p->module = f->module;
	p->runtime = f->runtime;
	p->worker = f->worker;
	d9_store_release(&p->active, 1);
}

/* The index of the worker that this thread is for tasks of the scheduler: of the innermost worker's life that it is in. */
static inline d9_u32 worker_of(struct d9_task_frames *s, d9_u64 scheduler)
{
	for (d9_u32 i = s->depth; i-- > 0;) {
		struct d9_task_frame *f = &s->of[i];
		if (f->kind == D9_TOKIO_TASK)
			continue;
		if (scheduler != f->scheduler[0] && scheduler != f->scheduler[1])
			break;
		if (__builtin_expect(!f->proven, 0)) {
			f->proven = true;
			f->kind = D9_TOKIO_WORKER;
			d9_store_relaxed(&d9_tokio_slots[f->slot].proven, 1);
		}
		return f->index;
	}
	return NO_WORKER;
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

static inline d9_u64 word_at(const struct d9_tokio_header *task, d9_u32 offset)
{
	return *(const d9_u64 *)((const char *)task + offset);
}

/* What comes through a slot for the first time must look like a task. */
static D9_COLD bool prove(struct d9_tokio_slot *s, const struct d9_tokio_header *task, d9_u64 id, d9_u64 state)
{
	if (!id || (state & ~MARKS) < D9_TOKIO_REFERENCE) {
		d9_store_relaxed(&s->off, 1);
		d9_shim_unseen("a kind of tasks", " looks like Tokio's and is not: let alone");
		return false;
	}
	d9_store_relaxed(&s->kind, task->owner ? D9_TOKIO_TASK : D9_TOKIO_JOB);
	return true;
}

static inline bool fits(struct d9_tokio_slot *s, const struct d9_tokio_header *task)
{
	if (__builtin_expect(task->table != s->table || s->off, 0))
		return false;
	return __builtin_expect(s->kind != D9_TOKIO_UNTOLD, 1) ||
	       prove(s, task, word_at(task, s->id_offset), d9_load_relaxed(&task->state));
}

static inline d9_u32 runtime_of(const struct d9_tokio_slot *s, const struct d9_tokio_header *task)
{
	return D9_RUNTIME_OF(s->copy + 1, task->owner);
}

/* What of a frame says which task it is. */
static inline void name_task(struct d9_task_frame *f, struct d9_tokio_header *task, const struct d9_tokio_slot *s,
			     d9_u32 slot)
{
	f->head = task;
	f->slot = slot;
	f->id = word_at(task, s->id_offset);
	f->module = s->copy + 1u;
	f->runtime = runtime_of(s, task);
}

/* ---- records ------------------------------------------------------------------------------------------------------- */

/* m: who made it, NULL = not known. */
static D9_COLD void record_spawn(struct d9_cell *me, const struct d9_task_frame *f, const struct d9_tokio_maker *m)
{
	const d9_u32 len = sizeof(struct d9_ev_task_spawn) + sizeof(struct d9_tail);
	struct d9_ev_task_spawn *e = (struct d9_ev_task_spawn *)d9_record_begin(me, len, D9_EV_task_spawn);
	if (!e)
		return;
	e->rec.site = 0;
	e->rec.t = f->t0;
	e->task = f->id;
	e->parent = m && m->module == f->module ? m->parent : 0;
	e->module = f->module;
	e->runtime = f->runtime;
	e->made = m ? m->t : 0;
	e->code = (d9_u64)d9_tokio_slots[f->slot].poll;
	e->thread = m ? m->thread : D9_THREAD_NONE;
	e->flags = (m ? D9_SPAWN_EXACT : 0) | (d9_tokio_slots[f->slot].kind == D9_TOKIO_JOB ? D9_SPAWN_JOB : 0) |
		   (f->late ? D9_SPAWN_LIFE : 0);
	*(struct d9_tail *)(e + 1) = (struct d9_tail){D9_TAIL_WORD(D9_TAIL_STRING, 0), 0};
	d9_record_commit(&e->rec, len, D9_EV_task_spawn);
}

/* While the task is held: its memory says who made it. */
static D9_COLD void record_first(struct d9_cell *me, const struct d9_task_frame *f, const struct d9_tokio_header *task)
{
	struct d9_tokio_maker m;
	record_spawn(me, f, d9_tokio_maker_of(task, &d9_tokio_slots[f->slot], &m) ? &m : NULL);
}

/* Its memory may be another's by now; what it said was kept. */
static D9_COLD void record_late(struct d9_cell *me, const struct d9_task_frame *f)
{
	struct d9_tokio_maker m = {.t = f->made, .parent = f->parent, .thread = f->maker, .module = f->parent_module};
	record_spawn(me, f, m.t ? &m : NULL);
}

static void record_end(struct d9_cell *me, d9_u64 id, d9_u32 module, enum d9_outcome outcome, d9_u64 t)
{
	const d9_u32 len = sizeof(struct d9_ev_task_end);
	struct d9_ev_task_end *e = (struct d9_ev_task_end *)d9_record_begin(me, len, D9_EV_task_end);
	if (!e)
		return;
	e->rec.site = 0;
	e->rec.t = t;
	e->task = id;
	e->module = module;
	e->outcome = (d9_u32)outcome;
	d9_record_commit(&e->rec, len, D9_EV_task_end);
}

static inline void record_poll(struct d9_cell *me, const struct d9_task_frame *f, enum d9_outcome outcome, d9_u64 t1)
{
	const d9_u32 len = sizeof(struct d9_ev_poll);
	struct d9_ev_poll *e = (struct d9_ev_poll *)d9_record_begin(me, len, D9_EV_poll);
	if (!e)
		return;
	e->rec.site = 0;
	e->rec.t = t1;
	e->dur = t1 - f->t0;
	e->task = f->id;
	e->module = f->module;
	e->runtime = f->runtime;
	e->worker = f->worker;
	e->outcome = (d9_u32)outcome;
	d9_record_commit(&e->rec, len, D9_EV_poll);
}

/* The task became runnable, or would have been if it were not polled just now. */
static void record_wake(struct d9_cell *me, const struct d9_tokio_header *task, d9_u64 id, d9_u32 module,
			d9_u32 runtime, d9_u32 flags)
{
	const struct d9_task_frames *s = frames_of(me);
	const struct d9_task_frame *f = top(s);
	const d9_u32 len = sizeof(struct d9_ev_wake);
	struct d9_ev_wake *e = (struct d9_ev_wake *)d9_record_begin(me, len, D9_EV_wake);
	if (!e)
		return;
	e->rec.site = 0;
	e->rec.t = d9_now();
	e->task = id;
	e->by = f && f->module == module ? f->id : 0;
	e->module = module;
	e->runtime = runtime;
	e->flags = flags | (!f && s && s->depth && s->of[s->depth - 1].proven ? D9_WAKE_DRIVER : 0) |
		   (d9_load_relaxed(&task->state) & D9_TOKIO_CANCELLED ? D9_WAKE_CANCEL : 0);
	e->pad = 0;
	d9_record_commit(&e->rec, len, D9_EV_wake);
}

static void record_join(struct d9_cell *me, const struct d9_task_frame *seen)
{
	const struct d9_task_frame *f = d9_tokio_current(me);
	const d9_u32 len = sizeof(struct d9_ev_task_join);
	struct d9_ev_task_join *e = (struct d9_ev_task_join *)d9_record_begin(me, len, D9_EV_task_join);
	if (!e)
		return;
	e->rec.site = 0;
	e->rec.t = seen->t0;
	e->task = seen->id;
	e->by = f && f->module == seen->module ? f->id : 0;
	e->module = seen->module;
	e->runtime = seen->runtime;
	d9_record_commit(&e->rec, len, D9_EV_task_join);
}

/* ---- polls ------------------------------------------------------------------------------------------------------------ */

/*
 * What became of a poll that found the state `was` and number `own`, and after which they are `now` and `number`.
 * A task that is cancelled before it is polled is dropped only; of one that is aborted meanwhile the word does not say whether it
 * was faster.
 */
static inline enum d9_outcome outcome_of(d9_u64 was, d9_u32 own, d9_u64 now, d9_u32 number)
{
	if (number != own)
		return now & D9_TOKIO_CANCELLED ? D9_OUTCOME_NOT_KNOWN : D9_OUTCOME_WOKEN;
	if (now & D9_TOKIO_COMPLETE)
		return was & D9_TOKIO_CANCELLED                        ? D9_OUTCOME_CANCELLED
		       : now & D9_TOKIO_CANCELLED && !(now & FINISHED) ? D9_OUTCOME_ABORTED
								       : D9_OUTCOME_READY;
	return now & D9_TOKIO_NOTIFIED ? D9_OUTCOME_WOKEN : D9_OUTCOME_PENDING;
}

static inline bool is_over(enum d9_outcome o)
{
	return o == D9_OUTCOME_READY || o == D9_OUTCOME_CANCELLED || o == D9_OUTCOME_ABORTED;
}

/*
 * A job of the blocking pool, or a worker's life.  What only may be one is a job until a task of the worker's is polled in it: it is told at once,
 * for it may run for long, and with what it may be.
 */
static void begin_job(struct d9_task_frame *f, const struct d9_tokio_header *task, const struct d9_tokio_slot *s)
{
	struct d9_tokio_worker w = {.index = NO_WORKER};
	struct d9_tokio_maker m = {.t = 0};
	enum d9_tokio_likeness like = d9_tokio_is_worker(task, s, &w);
	bool is = like == D9_TOKIO_LIKE || (like == D9_TOKIO_TAKEN && d9_load_relaxed(&s->proven));
	f->kind = is ? D9_TOKIO_WORKER : D9_TOKIO_JOB;
	f->index = w.index;
	f->scheduler[0] = like ? w.handle[0] : 0;
	f->scheduler[1] = like ? w.handle[1] : 0;
	f->proven = false;
	f->late = like && !is;
	f->made = f->late && d9_tokio_maker_of(task, s, &m) ? m.t : 0;
	f->parent = m.parent;
	f->maker = m.thread;
	f->parent_module = m.module;
}

/* A kind of which none was seen to be a worker's may be the program's own jobs. */
static D9_COLD void end_worker(const struct d9_task_frame *f)
{
	struct d9_tokio_slot *s = &d9_tokio_slots[f->slot];
	if (!f->proven && !d9_load_relaxed(&s->proven) && !d9_load_relaxed(&s->told) && is_on()) {
		d9_store_relaxed(&s->told, 1);
		d9_shim_note(
			"Tokio",
			": a blocking job that looks like a worker's life and polled no task is not among the jobs");
	}
}

/* The new innermost frame, not yet counted; NULL: this poll goes by unseen. */
static inline struct d9_task_frame *begin(struct d9_cell *me, struct d9_task_frames *frames,
					  struct d9_tokio_header *task, const struct d9_tokio_slot *s, d9_u32 slot)
{
	struct d9_task_frame *f = &frames->of[frames->depth];
	if (__builtin_expect(frames->depth >= D9_TASK_DEPTH || !hold(task, &f->state, &f->token), 0)) {
		d9_count_drop(me);
		return NULL;
	}
	name_task(f, task, s, slot);
	f->kind = s->kind;
	f->worker = f->kind == D9_TOKIO_TASK ? worker_of(frames, word_at(task, s->scheduler_offset)) : NO_WORKER;
	f->late = false;
	if (__builtin_expect(f->kind != D9_TOKIO_TASK, 0))
		begin_job(f, task, s);
	f->t0 = d9_now();
	return f;
}

/* A worker's life is no work, and what was over before is not polled. */
static inline bool counts(const struct d9_task_frame *f)
{
	return f->kind != D9_TOKIO_WORKER && !(f->state & (D9_TOKIO_COMPLETE | D9_TOKIO_RUNNING));
}

/* The poll of frame number `depth` has come back at t1, and found the task so. */
static inline void end(struct d9_cell *me, struct d9_task_frames *frames, d9_u32 depth, enum d9_outcome outcome,
		       d9_u64 t1)
{
	const struct d9_task_frame *f = &frames->of[depth];
	if (__builtin_expect(f->kind == D9_TOKIO_WORKER, 0))
		end_worker(f);
	if (counts(f) && is_on()) {
		if (__builtin_expect(f->late, 0) && d9_tokio_first((d9_u32)f->module - 1, f->id))
			record_late(me, f);
		record_poll(me, f, outcome, t1);
		if (__builtin_expect(is_over(outcome), 0))
			record_end(me, f->id, f->module, outcome, t1);
	}
	frames->depth = depth;
	if (__builtin_expect(is_on() || !d9_recording_ended(),
			     1)) /* else its last words tell of this poll, and may not be written yet */
		show(me, frames);
}

/*
 * Somebody's panic or a cancelled thread leaves a poll of ours: what the poll would have done at its end is done here, for there is no
 * cleanup attribute without libgcc_s.  The unwinder comes once to each frame that it leaves, innermost first, so it is the
 * innermost poll's.
 */
#define CLEANUP_PHASE 2
#define CONTINUE_UNWIND 8
int d9_tokio_unwound(int version, int actions, d9_u64 class, void *exception, void *context);
__attribute__((used)) D9_HIDDEN int d9_tokio_unwound(int version, int actions, d9_u64 class, void *exception,
						     void *context)
{
	(void)version, (void)class, (void)exception, (void)context;
	struct d9_cell *me = d9_me;
	if (!(actions & CLEANUP_PHASE) || !me || !me->slot)
		return CONTINUE_UNWIND;
	struct d9_task_frames *frames = frames_of(me);
	if (!frames || !frames->depth)
		return CONTINUE_UNWIND;
	const struct d9_task_frame *f = &frames->of[frames->depth - 1];
	d9_u32 number, own = f->token;
	bool last; /* then it is left lying: to free it is to run the program's code, which may panic, inside the unwinder */
	d9_u64 t1 = d9_now(), was = f->state, now = let_go(f->head, &number, &last);
	end(me, frames, frames->depth - 1, outcome_of(was, own, now, number), t1);
	return CONTINUE_UNWIND;
}

/* True: the caller is to free the task.  Not here, for that may panic too. */
static __attribute__((noinline)) bool poll_seen(struct d9_cell *me, struct d9_tokio_header *task,
						struct d9_tokio_slot *s, struct d9_task_frames *frames)
{
	__asm__ volatile(".cfi_personality 0x1b, d9_tokio_unwound");
	d9_u32 depth = frames->depth, thread = me->thread, number;
	struct d9_task_frame *f = &frames->of[depth];
	bool last;
	f->top = (d9_u64)__builtin_frame_address(0);
	frames->depth = depth + 1;
	show(me, frames);
	if (__builtin_expect(f->kind != D9_TOKIO_WORKER && (!f->late || is_on()) && d9_tokio_first(s->copy, f->id), 0))
		f->late ? record_late(me, f) : record_first(me, f, task);
	s->poll(task);
	d9_u64 t1 = d9_now(), now = let_go(task, &number, &last);
	me = d9_me;
	/* It forked, and this is the child: the poll is the parent's.  Or another stack was switched to, and the frames are another's. */
	if (__builtin_expect(!me || !me->slot || me->thread != thread || frames->depth <= depth || f->head != task, 0))
		return last;
	end(me, frames, depth, outcome_of(f->state, f->token, now, number), t1);
	return last;
}

void d9_tokio_poll(struct d9_tokio_header *task, d9_u32 slot)
{
	struct d9_tokio_slot *s = &d9_tokio_slots[slot];
	struct d9_task_frames *frames = NULL;
	struct d9_cell *me = NULL;
	/* Which worker a thread is must be known when recording is turned on in the middle of its life. */
	if (__builtin_expect(is_on() || s->kind != D9_TOKIO_TASK, 1))
		me = entered();
	if (me && fits(s, task) && (is_on() || s->kind == D9_TOKIO_JOB)) {
		frames = frames_of(me);
		if (__builtin_expect(!frames && is_on(), 0))
			d9_count_drop(me); /* no memory for them */
	}
	if (!frames || !begin(me, frames, task, s, slot))
		s->poll(task);
	else if (__builtin_expect(poll_seen(me, task, s, frames), 0))
		s->table->dealloc(task);
}

/* ---- wakes --------------------------------------------------------------------------------------------------------------- */

void d9_tokio_schedule(struct d9_tokio_header *task, d9_u32 slot)
{
	struct d9_tokio_slot *s = &d9_tokio_slots[slot];
	struct d9_cell *me = recording();
	if (me && fits(s, task))
		record_wake(me, task, word_at(task, s->id_offset), s->copy + 1u, runtime_of(s, task), 0);
	s->schedule(task);
}

/*
 * A wake of a task that stands still comes to `schedule`; one of a task that is polled only leaves a mark for the end of
 * the poll.  Between our look at the state and Tokio's the poll may end, and then both are recorded: of several wakes the first counts.
 * Or it may begin, and then neither is; the outcome of the poll says that there was one.
 */
static inline void note_wake(const struct d9_tokio_header *task, d9_u32 copy)
{
	const d9_u64 marks = D9_TOKIO_RUNNING | D9_TOKIO_COMPLETE | D9_TOKIO_NOTIFIED;
	if (__builtin_expect((d9_load_relaxed(&task->state) & marks) != D9_TOKIO_RUNNING, 1))
		return;
	const struct d9_tokio_copy *c = &d9_tokio_copies[copy];
	d9_u64 table = (d9_u64)task->table;
	struct d9_cell *me = recording();
	if (!me || !task->owner || table < c->lo || table >= c->hi || table & 7)
		return;
	record_wake(me, task, word_at(task, (d9_u32)task->table->id_offset), copy + 1,
		    D9_RUNTIME_OF(copy + 1, task->owner), D9_WAKE_POLLED);
}

void d9_tokio_wake(struct d9_tokio_header *task, d9_u32 copy)
{
	note_wake(task, copy);
	d9_tokio_copies[copy].wake(task);
}

void d9_tokio_wake_by_ref(struct d9_tokio_header *task, d9_u32 copy)
{
	note_wake(task, copy);
	d9_tokio_copies[copy].wake_by_ref(task);
}

/* What the program's future, or what it awaits, does to be woken: where it does so is where the task waits. */
struct d9_tokio_waker d9_tokio_clone(struct d9_tokio_header *task, d9_u32 copy)
{
	struct d9_cell *me = recording();
	const struct d9_task_frame *f = me ? d9_tokio_current(me) : NULL;
	if (f && f->head == task)
		d9_tokio_dump(me, f, __builtin_return_address(0), __builtin_frame_address(0));
	return d9_tokio_copies[copy].clone(task);
}

/* What may have been a worker's life is a job after all: a worker asks for no outcome but in a task. */
static void settle(struct d9_cell *me)
{
	struct d9_task_frames *s = frames_of(me);
	struct d9_task_frame *f = s && s->depth ? &s->of[s->depth - 1] : NULL;
	if (!f || !f->late)
		return;
	f->late = false;
	if (d9_tokio_first((d9_u32)f->module - 1, f->id))
		record_late(me, f);
}

/* A job that stands in its pool's queue is seen here first: nothing of it is called before it is run. */
static __attribute__((noinline)) void note_join(struct d9_cell *me, struct d9_tokio_header *task,
						const struct d9_tokio_slot *s, d9_u32 slot)
{
	struct d9_task_frame seen = {.t0 = d9_now()};
	name_task(&seen, task, s, slot);
	settle(me);
	if (!task->owner && !(d9_load_relaxed(&task->state) & D9_TOKIO_RUNNING) && d9_tokio_first(s->copy, seen.id))
		record_first(me, &seen, task);
	record_join(me, &seen);
}

/*
 * Who has the handle keeps the task, so it need not be held.  An outcome that was read before makes Tokio panic: through no frame of
 * ours, for this ends in a jump.
 */
void d9_tokio_read_output(struct d9_tokio_header *task, void *to, const void *waker, d9_u32 slot)
{
	struct d9_tokio_slot *s = &d9_tokio_slots[slot];
	struct d9_cell *me = recording();
	if (me && fits(s, task) && !(d9_load_relaxed(&task->state) & D9_TOKIO_COMPLETE))
		note_join(me, task, s, slot);
	s->read_output(task, to, waker);
}

/* ---- the end of a runtime --------------------------------------------------------------------------------------------------- */

/*
 * A runtime that ends marks its tasks as cancelled even if they are complete, which a poll that has just got so far would take for an
 * abort: it must know better.  Its own hold sees to it that the mark goes.
 */
static void tell_finished(struct d9_tokio_header *task)
{
	d9_u64 was = d9_load_relaxed(&task->state);
	do {
		if (!(was >> HELD_SHIFT) || !(was & D9_TOKIO_COMPLETE) || was & D9_TOKIO_CANCELLED)
			return;
	} while (!d9_cas_acq_rel(&task->state, &was, was | FINISHED));
}

/* A worker's life that never begins. */
static bool is_launch(const struct d9_tokio_header *task, const struct d9_tokio_slot *s)
{
	struct d9_tokio_worker w;
	return s->kind == D9_TOKIO_JOB && d9_tokio_is_worker(task, s, &w) == D9_TOKIO_LIKE;
}

/* The task is dropped without a poll, unless it is being polled: then that poll is its end. */
void d9_tokio_shutdown(struct d9_tokio_header *task, d9_u32 slot)
{
	struct d9_tokio_slot *s = &d9_tokio_slots[slot];
	struct d9_cell *me = recording();
	d9_u64 was, now;
	d9_u32 own, number;
	bool last;
	if (me && fits(s, task))
		tell_finished(task);
	if (!me || !fits(s, task) || is_launch(task, s) ||
	    d9_load_relaxed(&task->state) & (D9_TOKIO_RUNNING | D9_TOKIO_COMPLETE) || !hold(task, &was, &own)) {
		s->shutdown(task);
		return;
	}
	struct d9_task_frame f = {.t0 = d9_now()};
	d9_u32 thread = me->thread;
	name_task(&f, task, s, slot);
	if (d9_tokio_first(s->copy, f.id))
		record_first(me, &f, task);
	s->shutdown(task);
	d9_u64 t = d9_now();
	now = let_go(task, &number, &last);
	me = recording();
	if (me && me->thread == thread && !(was & (D9_TOKIO_RUNNING | D9_TOKIO_COMPLETE)) && number == own &&
	    now & D9_TOKIO_COMPLETE)
		record_end(me, f.id, f.module, D9_OUTCOME_CANCELLED, t);
	if (last)
		s->table->dealloc(task);
}
