/* Ways are columns: raw CUDA first, and the first library is the one that the targets are for. */
#include "table.h"
#include <sched.h>
#include <time.h>

enum { RAW, HOST_FUNCTION, LIBRARY, LABEL = 47 };

static const char *const units[] = {"us", "GB/s", "%", "ns"};

static void print_machine(FILE *out, const char *mark, const char *libraries)
{
	char date[64], line[256], cpu[128] = "unknown processor";
	time_t now = time(NULL);
	strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime(&now));
	FILE *file = fopen("/proc/cpuinfo", "r");
	while (file && fgets(line, sizeof line, file))
		if (!strncmp(line, "model name", 10) && strchr(line, ':')) {
			snprintf(cpu, sizeof cpu, "%.*s", (int)strcspn(strchr(line, ':') + 2, "\n"), strchr(line, ':') + 2);
			break;
		}
	if (file)
		fclose(file);
	cpu_set_t set;
	int cores = sched_getaffinity(0, sizeof set, &set) ? 0 : CPU_COUNT(&set);
	fprintf(out, "%s%s; driver %s; %d cores of %s; %s\n", mark, gpu.name, gpu.driver, cores, cpu, date);
	fprintf(out, "%sraw is %s; copying threads allowed: %s; library: %s\n", mark, gpu.interface,
		getenv("AML_DMA_CUDA_COPY_THREADS"), libraries);
}

void table_begin(struct table *table, const char *libraries)
{
	print_machine(stdout, "", libraries);
	if (table->csv) {
		print_machine(table->csv, "# ", libraries);
		fprintf(table->csv, "work,unit");
		for (size_t i = 0; i < table->way_count; i++)
			fprintf(table->csv, ",%s,%s ratio,%s submit us", table->ways[i]->name, table->ways[i]->name, table->ways[i]->name);
		fprintf(table->csv, ",target,verdict\n");
	}
	printf("\n%-*s %-4s %9s", LABEL, "work", "unit", table->ways[RAW]->name);
	for (size_t i = 1; i < table->way_count; i++)
		printf(" %13.13s %6s", table->ways[i]->name, "ratio");
	printf(" %8s\n", "target");
}

static void print_figure(int width, const struct result *result)
{
	if (result->error)
		printf(" %*s%4d", width - 4, "error", result->error);
	else if (result->measured)
		printf(" %*.*f", width, result->figure < 1000 ? 2 : 0, result->figure);
	else
		printf(" %*s", width, "-");
}

static int is_ratio(const struct row *row)
{
	return row->unit == MICROSECONDS || row->unit == GIGABYTES;
}

static const char *verdict(struct table *table, const struct row *row, const struct result *result)
{
	if (result->error) {
		table->failed++;
		return "FAILED";
	}
	if (!result->measured || row->limit == 0)
		return "";
	double figure = is_ratio(row) ? result->ratio : result->figure;
	if (row->unit == GIGABYTES ? figure >= row->limit : figure <= row->limit) {
		table->met++;
		return "PASS";
	}
	table->missed++;
	return "missed";
}

static void print_csv(const struct table *table, const struct row *row, const char *name, const struct result *results,
	const char *verdict)
{
	fprintf(table->csv, "\"%s\",%s", name, units[row->unit]);
	for (size_t i = 0; i < table->way_count; i++) {
		if (results[i].measured)
			fprintf(table->csv, ",%.4f,%.4f,%.4f", results[i].figure, results[i].ratio, results[i].submit);
		else
			fprintf(table->csv, ",,,");
	}
	fprintf(table->csv, ",%g,%s\n", row->limit, verdict);
	fflush(table->csv);
}

void table_line(struct table *table, const struct row *row, const struct result *results)
{
	char name[128], target[32] = "";
	row_name(row, name, sizeof name);
	const char *judged = verdict(table, row, &results[LIBRARY]);
	if (table->csv)
		print_csv(table, row, name, results, judged);
	printf("%-*s %-4s", LABEL, name, units[row->unit]);
	print_figure(9, &results[RAW]);
	for (size_t i = 1; i < table->way_count; i++) {
		print_figure(13, &results[i]);
		if (results[i].measured && is_ratio(row))
			printf(" %6.3f", results[i].ratio);
		else
			printf(" %6s", "");
	}
	if (row->limit > 0)
		snprintf(target, sizeof target, "%s%g%s", row->unit == GIGABYTES ? ">=" : "<=", row->limit, row->unit == PERCENT ? "%" : "");
	printf(" %8s %s\n", target, judged);
	if (table->split && results[RAW].submit > 0) {
		printf("%-*s %-4s", LABEL, "  of that, to start them", "us");
		for (size_t i = 0; i < table->way_count; i++)
			printf(i ? " %13.2f       " : " %9.2f", results[i].submit);
		printf("\n");
	}
	fflush(stdout);
}

void table_end(const struct table *table)
{
	printf("\ntargets met: %zu, missed: %zu; rows that failed: %zu\n", table->met, table->missed, table->failed);
}
