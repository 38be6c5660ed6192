#include "emulator.h"
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static struct emulator controls;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void look_up(void)
{
	struct {
		void *slot;
		const char *name;
	} all[] = {
		{&controls.fail, "cuemu_fail"},
		{&controls.fail_clear, "cuemu_fail_clear"},
		{&controls.fail_pending, "cuemu_fail_pending"},
		{&controls.fail_stream, "cuemu_fail_stream"},
		{&controls.hold, "cuemu_hold"},
		{&controls.release, "cuemu_release"},
		{&controls.set_delay, "cuemu_set_delay"},
		{&controls.set_bandwidth, "cuemu_set_bandwidth"},
		{&controls.set_peer_access, "cuemu_set_peer_access"},
		{&controls.set_compute_mode, "cuemu_set_compute_mode"},
		{&controls.set_reuse_handles, "cuemu_set_reuse_handles"},
		{&controls.live_contexts, "cuemu_live_contexts"},
		{&controls.live_streams, "cuemu_live_streams"},
		{&controls.live_events, "cuemu_live_events"},
		{&controls.live_device_allocations, "cuemu_live_device_allocations"},
		{&controls.live_host_allocations, "cuemu_live_host_allocations"},
		{&controls.live_managed_allocations, "cuemu_live_managed_allocations"},
		{&controls.live_registrations, "cuemu_live_registrations"},
		{&controls.live_modules, "cuemu_live_modules"},
		{&controls.primary_count, "cuemu_primary_count"},
		{&controls.calls, "cuemu_calls"},
		{&controls.stale_uses, "cuemu_stale_uses"},
		{&controls.log_start, "cuemu_log_start"},
		{&controls.log_stop, "cuemu_log_stop"},
		{&controls.log_length, "cuemu_log_length"},
		{&controls.log_get, "cuemu_log_get"},
	};
	/* Programs that call CUDA only through the library are not linked to the driver. Loading it is no use of it. */
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
	for (size_t i = 0; driver && i < sizeof all / sizeof *all; i++) {
		void *symbol = dlsym(driver, all[i].name);
		if (!symbol && i == 0)
			return; /* a GPU's driver, or none */
		REQUIRE(symbol);
		memcpy(all[i].slot, &symbol, sizeof symbol);
	}
}

const struct emulator *emulator(void)
{
	pthread_once(&once, look_up);
	return &controls;
}

int emulated(void) { return emulator()->fail != NULL; }

struct counts counts_now(void)
{
	struct counts now;
	memset(&now, 0, sizeof now);
	const struct emulator *emu = emulator();
	if (!emulated())
		return now;
	now.contexts = emu->live_contexts();
	now.streams = emu->live_streams();
	now.events = emu->live_events();
	now.device = emu->live_device_allocations();
	now.host = emu->live_host_allocations();
	now.managed = emu->live_managed_allocations();
	now.registrations = emu->live_registrations();
	now.primary[0] = emu->primary_count(0);
	now.primary[1] = emu->primary_count(1);
	return now;
}

void counts_require_same(struct counts before, const char *where)
{
	struct counts now = counts_now();
	if (memcmp(&before, &now, sizeof now) == 0)
		return;
	fprintf(stderr,
		"%s: contexts %zu -> %zu, streams %zu -> %zu, events %zu -> %zu, device memory %zu -> %zu, "
		"host memory %zu -> %zu, managed %zu -> %zu, registrations %zu -> %zu, primary counts %d, %d -> %d, %d\n",
		where, before.contexts, now.contexts, before.streams, now.streams, before.events, now.events,
		before.device, now.device, before.host, now.host, before.managed, now.managed, before.registrations,
		now.registrations, before.primary[0], before.primary[1], now.primary[0], now.primary[1]);
	exit(1);
}

void emulator_require_clean(void)
{
	const struct emulator *emu = emulator();
	REQUIRE_EQ(emu->stale_uses(), 0);
	REQUIRE_EQ(emu->live_device_allocations(), 0);
	REQUIRE_EQ(emu->live_managed_allocations(), 0);
	/* The library keeps the primary contexts that it used, and no other: what the test made itself must be gone. */
	size_t primaries = 0;
	for (int device = 0; emu->primary_count(device) >= 0; device++)
		primaries += emu->primary_count(device) > 0;
	REQUIRE_EQ(emu->live_contexts(), primaries);
}

size_t logged(const char *name, int result)
{
	const struct emulator *emu = emulator();
	size_t count = 0;
	if (!emulated())
		return 0;
	for (size_t i = 0; i < emu->log_length(); i++) {
		char called[64];
		CUresult answered;
		REQUIRE(emu->log_get(i, NULL, called, sizeof called, &answered) == CUDA_SUCCESS);
		count += (!name || strcmp(name, called) == 0) && (result < 0 || (int)answered == result);
	}
	return count;
}
