/*
 * The file's own table of events says how columns are to be read; what they mean is looked up by (event
 * name, field name) in this build's table.  That is done once per file: struct d9_plan.
 */
#include "segment_read_internal.h"

#include <errno.h>
#include <string.h>

struct text {
	const char *p;
	size_t n;
};

static bool get_text(struct d9_cursor *c, struct text *ret)
{
	d9_u64 n;
	if (!d9_uvar_need(c, &n) || n > (d9_u64)(c->end - c->p))
		return false;
	*ret = (struct text){(const char *)c->p, (size_t)n};
	c->p += n;
	return true;
}

static bool text_is(const struct text *t, const char *s) { return strlen(s) == t->n && memcmp(s, t->p, t->n) == 0; }

static unsigned find_event(const struct text *name)
{
	for (unsigned id = 1; id <= D9_EVENT_ID_MAX; id++)
		if (d9_events[id].name && text_is(name, d9_events[id].name))
			return id;
	return 0;
}

/* The column of one field: where in the row it goes. */
static struct d9_plan_column place_column(struct d9_plan *plan, const struct text *name, bool is_dur, d9_u64 codec)
{
	const struct d9_event_desc *e = &d9_events[plan->id];
	struct d9_plan_column c = {.codec = (d9_u8)codec};
	bool is_tail = e->has_tail && text_is(name, e->fields[e->n_fields].name);
	if ((codec == D9_CODEC_BLOB && is_tail) || (codec == D9_CODEC_BYTES && plan->is_blob)) {
		c.off = D9_ROW_TAIL(plan);
		c.size = 8;
		return c;
	}
	if (codec < D9_CODEC_UINT || codec > D9_CODEC_BEFORE)
		return c;
	unsigned off = sizeof(struct d9_rec);
	for (unsigned i = 0; i < e->n_fields; off += e->fields[i++].size)
		if (text_is(name, e->fields[i].name)) {
			c.off = (d9_u16)off;
			c.size = e->fields[i].size;
		}
	/* Without the duration there is no time: a span needs it though this build may have no such field. */
	if (is_dur && c.size != 8) {
		c.off = D9_ROW_DUR(plan);
		c.size = 8;
	}
	if (is_dur)
		plan->dur_off = c.off;
	return c;
}

static bool get_field(struct d9_cursor *c, struct d9_plan *plan)
{
	struct text name, type, unit;
	d9_u64 codec;
	if (!get_text(c, &name) || !get_text(c, &type) || !get_text(c, &unit) || !d9_uvar_need(c, &codec) ||
	    codec > 255)
		return false;
	bool is_dur = plan->t_codec == D9_CODEC_T_GAP && !plan->dur_off && text_is(&unit, "TICKS");
	struct d9_plan_column column = place_column(plan, &name, is_dur, codec);
	if (column.codec == D9_CODEC_BEFORE && column.size == 8)
		plan->before_off[plan->n_before++] = column.off;
	else if (column.codec == D9_CODEC_BEFORE)
		column.size = 0;
	plan->column[plan->n_columns++] = column;
	return true;
}

/* One event.  0, -ENOMEM, -EBADMSG, or -EPROTO: its records cannot be read, and so neither can those beside them. */
static int get_event(struct d9_cursor *c, struct d9_plan **plans)
{
	d9_u64 id, size, t_codec, site_codec, n_fields;
	struct text name, kind;
	if (!d9_uvar_need(c, &id) || id == 0 || id > D9_EVENT_ID_MAX || plans[id] || !get_text(c, &name) ||
	    !get_text(c, &kind) || !d9_uvar_need(c, &size) || !d9_uvar_need(c, &t_codec) ||
	    !d9_uvar_need(c, &site_codec) || !d9_uvar_need(c, &n_fields))
		return -EBADMSG;
	if (n_fields > D9_PLAN_FIELDS_MAX || t_codec < D9_CODEC_T || t_codec > D9_CODEC_T_GAP ||
	    site_codec < D9_CODEC_UINT || site_codec > D9_CODEC_CHAIN)
		return -EPROTO;
	struct d9_plan *plan = plans[id] = calloc(1, sizeof(*plan));
	if (!plan)
		return -ENOMEM;
	plan->id = (d9_u8)find_event(&name);
	plan->dropped = !plan->id;
	plan->is_blob = plan->id == D9_EV_blob;
	plan->size = plan->id ? d9_events[plan->id].size : sizeof(struct d9_rec);
	plan->t_codec = (d9_u8)t_codec;
	plan->site_codec = (d9_u8)site_codec;
	for (d9_u64 i = 0; i < n_fields; i++)
		if (!get_field(c, plan))
			return -EBADMSG;
	return t_codec == D9_CODEC_T_GAP && !plan->dur_off ? -EPROTO : 0;
}

int d9_segr_read_plans(struct d9_segr *r, const struct d9_block_header *h)
{
	struct d9_cursor c = {r->raw, r->raw + h->raw};
	d9_u64 n;
	if (!d9_uvar_need(&c, &n) || n > D9_EVENT_ID_MAX)
		return -EBADMSG;
	for (d9_u64 i = 0; i < n; i++) {
		int error = get_event(&c, r->plan);
		if (error)
			return error;
	}
	return 0;
}
