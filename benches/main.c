/* The benchmark: this library beside raw CUDA, beside the host function that marks each request, and beside others.
 * All ways take turns in one process, round by round, and ratios are taken within a round. */
#include "clock.h"
#include "table.h"
#include <getopt.h>

enum { MOST_ROUNDS = 101 };

static const char *usage =
	"usage: %s [OPTION]... [[NAME=]LIBRARY]...\n"
	"Times copies through raw CUDA, a host function per request, libaml_dma_cuda, and further libraries like it.\n"
	"  --library [NAME=]PATH  the library that targets are for (libaml_dma_cuda.so.0)\n"
	"  --rows WORDS           only rows whose group or name contains one of the words, separated by commas\n"
	"  --all                  also rows without a target that are left out otherwise\n"
	"  --quick                few rounds\n"
	"  --rounds N             so many rounds (15)\n"
	"  --split                also the part of each time that starting the copies took\n"
	"  --csv FILE             the figures for a program, too\n"
	"  --driver               raw CUDA is the driver's calls, not the runtime's\n"
	"  --list                 names of the rows\n"
	"Exit status: 0, also when a target is missed; 1 when something failed; 77 without a GPU.\n";

static struct {
	const char *rows, *csv;
	int all, quick, driver, list, rounds;
} options = {.rounds = 15};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *figures, size_t count)
{
	qsort(figures, count, sizeof *figures, compare);
	return (figures[(count - 1) / 2] + figures[count / 2]) / 2;
}

static int chosen(const struct row *row)
{
	char name[128], words[256];
	row_name(row, name, sizeof name);
	if (!options.rows)
		return options.all || !row->extra;
	snprintf(words, sizeof words, "%s", options.rows);
	for (char *rest, *word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
		if (strstr(row->group, word) || strstr(name, word))
			return 1;
	return 0;
}

/* The slow rows need no many rounds. */
static int rounds_of(const struct row *row)
{
	int few = row->unit == PERCENT ? 5 : row->bytes >= 256 << 20 && row->host == PAGEABLE ? 7 : options.rounds;
	return few < options.rounds ? few : options.rounds;
}

static void measure(const struct stage *stage, struct lane *lanes, size_t count, struct result *results)
{
	static double figures[MOST_WAYS][MOST_ROUNDS], submits[MOST_WAYS][MOST_ROUNDS], ratios[MOST_ROUNDS];
	int rounds = rounds_of(stage->row);
	size_t check = stage->transfers ? stage->count < 8 ? stage->count : 8 : 0;
	for (size_t way = 0; way < count; way++) {
		double unused;
		if (!results[way].measured)
			continue;
		results[way].error = memory_verify(&lanes[way], stage_transfers(stage, &lanes[way]), check);
		if (!results[way].error)
			results[way].error = stage->row->work(stage, &lanes[way], &unused, &unused);
	}
	for (int round = 0; round < rounds; round++)
		for (size_t turn = 0; turn < count; turn++) {
			size_t way = (turn + (size_t)round) % count;
			if (results[way].measured && !results[way].error)
				results[way].error = stage->row->work(stage, &lanes[way], &figures[way][round], &submits[way][round]);
		}
	for (size_t way = 0; way < count; way++) {
		struct result *result = &results[way];
		result->measured &= !result->error;
		if (!result->measured)
			continue;
		for (int round = 0; round < rounds; round++)
			ratios[round] = figures[way][round] / figures[0][round];
		if (way)
			result->ratio = median(ratios, (size_t)rounds);
		result->submit = median(submits[way], (size_t)rounds);
	}
	for (size_t way = 0; way < count; way++) // sorted last, since ratios go by the rounds
		results[way].figure = results[way].measured ? median(figures[way], (size_t)rounds) : 0;
	results[0].ratio = 1;
}

static void run_row(struct table *table, const struct row *row)
{
	struct stage stage;
	struct lane lanes[MOST_WAYS];
	struct result results[MOST_WAYS] = {0};
	int error = row_prepare(&stage, row);
	for (size_t way = 0; way < table->way_count; way++) {
		int can = way_can(table->ways[way], row->shape);
		if (row->work == work_decision)
			can = can && table->ways[way]->library;
		if (row->work == work_lifecycle)
			can = table->ways[way] != &host_function_way;
		results[way].error = !can ? 0 : error ? error : lane_open(&lanes[way], table->ways[way], row->kind);
		results[way].measured = can && !results[way].error;
	}
	int opened[MOST_WAYS];
	for (size_t way = 0; way < table->way_count; way++)
		opened[way] = results[way].measured;
	if (!error)
		measure(&stage, lanes, table->way_count, results);
	for (size_t way = 0; way < table->way_count; way++)
		if (opened[way] && lanes[way].way->close(&lanes[way]))
			results[way].error = results[way].error ? results[way].error : -AML_FAILURE;
	row_release(&stage);
	table_line(table, row, results);
}

static const char *parse(int argc, char **argv, struct table *table)
{
	const char *library = "library=libaml_dma_cuda.so.0";
	static const struct option long_options[] = {
		{"library", required_argument, NULL, 'l'},
		{"rows", required_argument, NULL, 'r'},
		{"rounds", required_argument, NULL, 'n'},
		{"all", no_argument, &options.all, 1},
		{"quick", no_argument, &options.quick, 1},
		{"split", no_argument, NULL, 's'},
		{"csv", required_argument, NULL, 'c'},
		{"driver", no_argument, &options.driver, 1},
		{"list", no_argument, &options.list, 1},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	for (int option; (option = getopt_long(argc, argv, "h", long_options, NULL)) != -1;) {
		if (option == 'l')
			library = optarg;
		else if (option == 'r')
			options.rows = optarg;
		else if (option == 'n')
			options.rounds = atoi(optarg);
		else if (option == 's')
			table->split = 1;
		else if (option == 'c')
			options.csv = optarg;
		else if (option) {
			fprintf(option == 'h' ? stdout : stderr, usage, argv[0]);
			exit(option == 'h' ? 0 : 2);
		}
	}
	if (options.quick)
		options.rounds = 5;
	if (options.rounds < 1 || options.rounds > MOST_ROUNDS) {
		fprintf(stderr, "rounds: 1 to %d\n", MOST_ROUNDS);
		exit(2);
	}
	return library;
}

int main(int argc, char **argv)
{
	struct table table = {0};
	const char *first = parse(argc, argv, &table);
	if (options.list) {
		for (size_t i = 0; i < row_count; i++) {
			char name[128];
			row_name(&rows[i], name, sizeof name);
			printf("%-10s %s%s\n", rows[i].group, name, rows[i].extra ? " (with --all)" : "");
		}
		return 0;
	}
	setenv("AML_DMA_CUDA_COPY_THREADS", "8", 0);
	if (gpu_open(options.driver))
		return 77;
	static struct library libraries[MOST_WAYS];
	static struct way library_ways[MOST_WAYS];
	const struct way *ways[MOST_WAYS] = {&raw_way, &host_function_way};
	table.ways = ways;
	table.way_count = 2;
	char named[512];
	snprintf(named, sizeof named, "%s", first);
	for (int i = optind - 1; i < argc && table.way_count < MOST_WAYS; i++) {
		size_t at = table.way_count++ - 2;
		if (library_open(&libraries[at], i < optind ? first : argv[i]))
			return 1;
		library_ways[at] = library_way(&libraries[at]);
		ways[at + 2] = &library_ways[at];
		if (i >= optind)
			snprintf(named + strlen(named), sizeof named - strlen(named), ", %s", argv[i]);
	}
	if (options.csv && !(table.csv = fopen(options.csv, "w"))) {
		perror(options.csv);
		return 1;
	}
	table_begin(&table, named);
	double start = seconds();
	for (size_t i = 0; i < row_count; i++)
		if (chosen(&rows[i]))
			run_row(&table, &rows[i]);
	table_end(&table);
	if (table.csv && fclose(table.csv)) {
		perror(options.csv);
		return 1;
	}
	fprintf(stderr, "took %.0f s\n", seconds() - start);
	return table.failed ? 1 : 0;
}
