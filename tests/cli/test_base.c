/* Durations, moments, options and JSON: what every command of d9 stands on. */
#include "cli/clean.h"
#include "cli/cmd.h"
#include "cli/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int n_failed;
#define CHECK(x) ((x) ? (void)0 : (void)(n_failed++, fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x)))
#define N(a) (sizeof(a) / sizeof((a)[0]))

static void test_durations(void)
{
	static const struct {
		const char *text;
		d9_u64 ns;
	} good[] = {{"10ms", 10000000},   {"1.5s", 1500000000}, {"250us", 250000}, {"100ns", 100},
		    {"2m", 120000000000}, {"0.1s", 100000000},  {"0ns", 0},        {"18446744073709551615ns", ~0ull}};
	static const char *const bad[] = {
		"", "1", "ms", "-1s", "1.s", ".5s", "1e3s", "1 s", "1h", "18446744073709551616ns", "99999999999999m"};
	static const struct {
		d9_u64 ns;
		const char *text;
	} shown[] = {
		{0, "0 ns"},           {85000, "85 us"},       {1000, "1.00 us"},       {999999, "1.00 ms"},
		{253000000, "253 ms"}, {1200000000, "1.20 s"}, {12340000000, "12.3 s"}, {725000000000, "12 m 5 s"}};
	d9_u64 ns;
	char buf[32];
	for (size_t i = 0; i < N(good); i++)
		CHECK(d9_parse_duration(good[i].text, &ns) == 0 && ns == good[i].ns);
	for (size_t i = 0; i < N(bad); i++)
		CHECK(d9_parse_duration(bad[i], &ns) < 0);
	for (size_t i = 0; i < N(shown); i++)
		CHECK(!strcmp(d9_format_duration(shown[i].ns, buf), shown[i].text));
}

static void test_clean(void)
{
	static const char *const pairs[][2] = {{"plain", "plain"},
					       {"\033[31m\a\177", "?[31m??"},
					       {"a\nb\tc\r", "a b c "},
					       {"\xc2\x9b\xc2\x80", "????"},
					       {"gr\xc3\xbc\xc3\x9f\xe2\x82\xac", "gr\xc3\xbc\xc3\x9f\xe2\x82\xac"},
					       {"\x9b\xff\xc3", "???"},
					       {"\xed\xa0\x80", "???"}};
	for (size_t i = 0; i < N(pairs); i++) {
		char buf[32];
		snprintf(buf, sizeof(buf), "%s", pairs[i][0]);
		CHECK(!strcmp(d9_clean(buf, strlen(buf)), pairs[i][1]));
	}
	char two[] = "a\0\033b";
	CHECK(!memcmp(d9_clean(two, 4), "a\0?b", 4)); /* what separates stays */
}

static int parse(struct d9_read_opts *o, const char **top, unsigned n_operands, const char *const *args)
{
	static const struct d9_cmd cmd = {"report", NULL, "[--top N] [DIR]", "Sums up.", "  --top N\n"};
	const struct d9_opt extra[] = {{"--top", true, top}};
	char *argv[16] = {(char *)"report"};
	int argc = 1;
	for (; args[argc - 1]; argc++)
		argv[argc] = (char *)args[argc - 1];
	return d9_read_opts_parse(&cmd, argc, argv, n_operands, extra, 1, o);
}
#define PARSE(n, ...) parse(&o, &top, n, (const char *const[]){__VA_ARGS__, NULL})

static void test_options(void)
{
	struct d9_read_opts o;
	const char *top = NULL;
	CHECK(PARSE(0, "dd", "--from", "-3s", "--to=2024-05-01T12:00:00.25+02:00", "--top=4", "--json", "--pid",
		    "12") == 0);
	CHECK(!strcmp(o.dir, "dd") && o.json && o.pid == 12 && !strcmp(top, "4") && !o.operand && !o.session);
	CHECK(o.from.kind == D9_TIME_BEFORE_END && o.from.ns == 3000000000);
	CHECK(o.to.kind == D9_TIME_REAL && o.to.ns == 1714557600250000000);
	CHECK(PARSE(1, "poll", "--from=12.5s") == 0 && !strcmp(o.operand, "poll") && o.from.kind == D9_TIME_FROM_START);
	CHECK(PARSE(1, "--json") == D9_EXIT_USAGE + 1); /* the operand is missing */
	CHECK(PARSE(0, "a", "b") == D9_EXIT_USAGE + 1);
	CHECK(PARSE(0, "--nothing") == D9_EXIT_USAGE + 1);
	CHECK(PARSE(0, "--json=1") == D9_EXIT_USAGE + 1);
	CHECK(PARSE(0, "--top") == D9_EXIT_USAGE + 1);
	CHECK(PARSE(0, "--pid", "x") == D9_EXIT_USAGE + 1);
	CHECK(PARSE(0, "--to", "2024-13-01T00:00:00Z") == D9_EXIT_USAGE + 1);
	CHECK(PARSE(0, "--to", "2024-05-01T12:00:00") == D9_EXIT_USAGE + 1);
	CHECK(PARSE(0, "--", "-odd") == 0 && !strcmp(o.dir, "-odd"));
}

static void test_default_dir(void)
{
	char dir[] = "/tmp/d9-test-XXXXXX", user[64];
	struct d9_read_opts o;
	const char *top;
	if (!mkdtemp(dir) || chdir(dir) < 0)
		exit(99);
	snprintf(user, sizeof(user), "/var/tmp/d9-%u", (unsigned)geteuid());
	unsetenv("D9_DIR");
	CHECK(PARSE(0, "--json") == 0 && !strcmp(o.dir, user));
	CHECK(symlink("/", "d9-traces") == 0);
	CHECK(PARSE(0, "--json") == 0 && !strcmp(o.dir, "./d9-traces"));
	setenv("D9_DIR", "/x", 1);
	CHECK(PARSE(0, "--json") == 0 && !strcmp(o.dir, "/x"));
	unlink("d9-traces");
	rmdir(dir);
}

static void test_json(void)
{
	static const char want[] =
		"{\"schema\":\"d9.t/1\",\"s\":\"a\xef\xbf\xbd\\\"\\\\\\n\\u0001\xc3\xa9\",\"l\":[1,{},{\"k\":null}],"
		"\"f\":1.5,\"g\":null,\"h\":0,\"i\":123456789,\"j\":1e-07,\"p\":\"0xff\",\"n\":null,\"b\":true,\"m\":-"
		"1}\n";
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	struct d9_json j;
	d9_json_document(&j, f, "t");
	d9_json_str(&j, "s", "a\xff\"\\\n\x01\xc3\xa9");
	d9_json_array(&j, "l");
	d9_json_u64(&j, NULL, 1);
	d9_json_object(&j, NULL);
	d9_json_end_object(&j);
	d9_json_object(&j, NULL);
	d9_json_known(&j, "k", D9_NOT_KNOWN);
	d9_json_end_object(&j);
	d9_json_end_array(&j);
	d9_json_f64(&j, "f", 1.5);
	d9_json_f64(&j, "g", NAN);
	d9_json_f64(&j, "h", 0);
	d9_json_f64(&j, "i", 123456789);
	d9_json_f64(&j, "j", 1e-7);
	d9_json_addr(&j, "p", 255);
	d9_json_str(&j, "n", NULL);
	d9_json_bool(&j, "b", true);
	d9_json_i64(&j, "m", -1);
	CHECK(d9_json_end_document(&j) == 0 && j.depth == 0);
	fclose(f);
	if (strcmp(text, want)) {
		fprintf(stderr, "json: %s", text);
		n_failed++;
	}
	free(text);
}

int main(void)
{
	test_durations();
	test_clean();
	test_options();
	test_default_dir();
	test_json();
	return n_failed ? 1 : 0;
}
