/*
 * Buffered I/O.  What touches the buffer alone leaves nothing; what may have to wait is a span, or is counted.  All output of
 * the program itself goes past stdio.
 */
#define PROG_SAYS_RAW
#include "prog.h"

#include <stdio_ext.h>
#include <wchar.h>

static int p[2], full[2];
static FILE *in, *out;
static char buf[8192];

int __overflow(FILE *f, int c);
int __uflow(FILE *f);
/* Headers have inlines of these, which call others. */
static size_t (*volatile plain_fread_unlocked)(void *, size_t, size_t, FILE *) = fread_unlocked;
static size_t (*volatile plain_fwrite_unlocked)(const void *, size_t, size_t, FILE *) = fwrite_unlocked;
static ssize_t (*volatile plain_getline)(char **, size_t *, FILE *) = getline;
static int (*volatile plain_vprintf)(const char *, va_list) = vprintf;
static int (*volatile plain_fputc)(int, FILE *) = fputc;
static char room[2][8192];

static void act_line(void *arg)
{
	(void)arg;
	(void)raw(SYS_write, p[1], "a line\n", 7);
}

#define CAME(hook, call, result, good)               \
	do {                                         \
		__fpurge(in);                        \
		when_asleep(act_line, NULL);         \
		long r = (long)(call);               \
		woken();                             \
		expect(hook, result, "fd=%d", p[0]); \
		MUST(good);                          \
	} while (0)
#define WENT(hook, call, result, good)                  \
	do {                                            \
		fill_fd(full[1]);                       \
		when_asleep(act_empty, &full[0]);       \
		long r = (long)(call);                  \
		woken();                                \
		expect(hook, result, "fd=%d", full[1]); \
		MUST(good);                             \
		act_empty(&full[0]);                    \
	} while (0)
#define FAST(hook, call, result, fd)             \
	do {                                     \
		long r = (long)(call);           \
		fast(hook, result, "fd=%d", fd); \
	} while (0)

static int by_stdout(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	int r = plain_vprintf(format, ap);
	va_end(ap);
	return r;
}

static void reads(void)
{
	char *line = NULL;
	size_t n = 0;
	CAME("fgets", fgets(buf, sizeof(buf), in), r != 0, r && !strcmp(buf, "a line\n"));
	CAME("fgets_unlocked", fgets_unlocked(buf, sizeof(buf), in), r != 0, r);
	CAME("fread", fread(buf, 1, 7, in), r, r == 7);
	CAME("fread_unlocked", plain_fread_unlocked(buf, 7, 1, in), r, r == 1);
	CAME("getline", plain_getline(&line, &n, in), r, r == 7 && !strcmp(line, "a line\n"));
	CAME("getdelim", getdelim(&line, &n, 'n', in), r, r == 5);
	CAME("__getdelim", __getdelim(&line, &n, 'i', in), r, r == 4);
	CAME("__uflow", __uflow(in), r, r == 'a');
	act_line(NULL);
	__fpurge(in);
	FAST("fread", fread(buf, 1, 1, in), r, p[0]); /* fetches the rest of the line as well */
	for (int i = 0; i < 5; i++)
		MUST(fread(buf, 1, 1, in) == 1); /* which lies there: not counted */
	MUST(getc(in) == '\n');
	free(line);
}

static void writes(void)
{
	out = fdopen(full[1], "w");
	MUST(out && !setvbuf(out, NULL, _IONBF, 0));
	WENT("fwrite", fwrite("abc", 1, 3, out), r, r == 3);
	WENT("fwrite_unlocked", plain_fwrite_unlocked("abc", 3, 1, out), r, r == 1);
	WENT("fputs", fputs("abc", out), r, r >= 0);
	WENT("fputs_unlocked", fputs_unlocked("abc", out), r, r >= 0);
	WENT("fprintf", fprintf(out, "%d %s %.2f", 1, "two", 3.0), r, r == 10);
	WENT("vfprintf", by_v(out, "%d %s %.2f", 1, "two", 3.0), r, r == 10);
	WENT("dprintf", dprintf(full[1], "%d %s %.2f", 1, "two", 3.0), r, r == 10);
	WENT("vdprintf", by_vd(full[1], "%d %s %.2f", 1, "two", 3.0), r, r == 10);
	MUST(!setvbuf(out, room[0], _IOFBF, 8192));
	MUST(plain_fputc('x', out) == 'x');
	FAST("fwrite", fwrite("abc", 1, 3, out), r, full[1]); /* the stream was without a buffer: this goes out */
	MUST(fwrite("abc", 1, 3, out) == 3 && fputs("def", out) >= 0);
	MUST(fprintf(out, "%s", "ghi") == 3 && by_v(out, "%s", "jkl") == 3); /* all that: into the buffer */
	WENT("fflush", fflush(out), r, !r);
	MUST(fputc('x', out) == 'x');
	WENT("fflush_unlocked", fflush_unlocked(out), r, !r);
	FAST("fwrite", fwrite(buf, 1, 8192, out), r, full[1]); /* as much as there is room: counted */
	act_empty(&full[0]);
	FAST("fflush", fflush(out), RESULT(r), full[1]);
	act_empty(&full[0]);
	MUST(fwrite(buf, 1, 8191, out) == 8191 && plain_fputc('x', out) == 'x'); /* full to the last byte */
	WENT("__overflow", __overflow(out, 'y'), r, r == 'y');
	FAST("fflush", fflush(NULL), RESULT(r), -1);
	MUST(fputc('x', out) == 'x');
	WENT("fclose", fclose(out), r, !r);
}

/* A thread that holds the FILE keeps the others waiting, whatever room there is. */
static void act_hold(void *f) { flockfile(f); }
static void act_release(void *f) { funlockfile(f); }
static void held(void)
{
	FILE *f = tmpfile();
	MUST(f && !setvbuf(f, NULL, _IOFBF, 8192));
	MUST(fputc('x', f) == 'x');
	partner_do(act_hold, f);
	when_asleep(act_release, f);
	int r = fputs("abc", f), fd = fileno(f);
	woken();
	expect("fputs", r, "fd=%d", fd);
	flockfile(f); /* its own: no wait */
	MUST(fputs("abc", f) >= 0);
	funlockfile(f);
	r = fclose(f);
	fast("fclose", RESULT(r), "fd=%d", fd);
}

static void files(void)
{
	char name[64];
	snprintf(name, sizeof(name), "stdio-%d", (int)raw(SYS_getpid));
	FILE *f;
	int fd;
	FAST("fopen", (f = fopen(name, "w"), f ? fileno(f) : -1), RESULT(r), -1);
	MUST(f);
	FAST("freopen", (freopen(name, "r", f), f ? fileno(f) : -1), RESULT(r), fileno(f));
	FAST("freopen64", (freopen64(name, "a", f), f ? fileno(f) : -1), RESULT(r), fileno(f));
	fd = fileno(f);
	FAST("fclose", fclose(f), RESULT(r), fd);
	FAST("fopen64", (f = fopen64(name, "r"), f ? fileno(f) : -1), RESULT(r), -1);
	FAST("fgets", fgets(buf, sizeof(buf), f), r != 0, fileno(f)); /* the end */
	char *line = NULL;
	size_t n = 0;
	FAST("getline", plain_getline(&line, &n, f), r + 1, fileno(f)); /* -1, and no error */
	free(line);
	fd = fileno(f);
	FAST("fclose", fclose(f), RESULT(r), fd);
	FAST("fopen", (f = fopen("/nowhere/at-all", "r"), -1), RESULT(r), -1);
	FAST("fopen64", (f = fopen64("/nowhere/at-all", "r"), -1), RESULT(r), -1);
	raw(SYS_unlink, name);
}

/* The program's own standard output: a pipe that is full, for a while. */
static void standard_output(void)
{
	int real = (int)raw(SYS_dup, 1);
	MUST(real >= 0 && raw(SYS_dup2, full[1], 1) == 1);
	MUST(!setvbuf(stdout, NULL, _IONBF, 0));
	prog_out = real;
#define TOLD(hook, call, good)                    \
	do {                                      \
		fill_fd(1);                       \
		when_asleep(act_empty, &full[0]); \
		int r = call;                     \
		woken();                          \
		expect(hook, r, "%s", "fd=1");    \
		MUST(good);                       \
	} while (0)
	TOLD("puts", puts("abc"), r > 0);
	TOLD("printf", printf("%d %s %.2f", 1, "two", 3.0), r == 10);
	TOLD("vprintf", by_stdout("%d %s %.2f", 1, "two", 3.0), r == 10);
	MUST(!setvbuf(stdout, room[1], _IOFBF, 8192));
	FAST("puts", puts("abc"), r, 1);
	FAST("printf", printf("%d", 1), r, 1);
	for (int i = 0; i < 50; i++)
		MUST(puts("abc") > 0 && printf("%d", 1) == 1);
	raw(SYS_dup2, real, 1);
	__fpurge(stdout);
}

int main(void)
{
	MUST(!pipe(p) && !pipe(full));
	in = fdopen(p[0], "r");
	MUST(in);
	partner_start();
	reads();
	int again = (int)raw(SYS_dup, full[1]);
	writes();
	full[1] = again;
	held();
	files();
	standard_output();
	partner_end();
	_exit(0); /* not through stdio */
}
