//! What a test can set: by environment when the process starts, later by the cuemu_ calls.
//! Also the injected failures: the Nth call of a name answers with a code instead of doing its work.
use crate::entry::{Entry, TABLE};
use crate::result::*;
use crate::sync::Mutex;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};

/// The settings. What is plain is fixed for the life of the process; what is atomic may be changed by a cuemu_ call.
pub struct Settings {
    /// Number of devices, before CUDA_VISIBLE_DEVICES chooses among them.
    pub devices: AtomicI32,
    /// Bytes of memory of each device.
    pub memory: u64,
    /// What cuDriverGetVersion answers; entry points that came later do not exist.
    pub driver_version: i32,
    /// Every call answers CUDA_ERROR_STUB_LIBRARY, as the toolkit's link-time library does.
    pub stub: bool,
    /// Whether one device can reach another's memory.
    pub peer_access: AtomicBool,
    /// Compute mode of all devices: 0 default, 2 prohibited, 3 exclusive process.
    pub compute_mode: AtomicI32,
    /// Nanoseconds that each copy takes before it is carried out.
    pub delay: AtomicU64,
    /// Speed of a copy; 0 is as fast as can be.
    pub bytes_per_second: AtomicU64,
    /// Whether a new handle takes the value of the one destroyed last, as a real allocator would.
    pub reuse_handles: AtomicBool,
}

fn number<T: FromStr>(name: &str, otherwise: T) -> T {
    std::env::var(name).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(otherwise)
}

/// The settings, read from the environment on first use.
pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        if let Ok(rules) = std::env::var("CUEMU_FAIL") {
            for rule in rules.split([',', ' ']).filter_map(Rule::parse) {
                arm(rule);
            }
        }
        Settings {
            devices: AtomicI32::new(number("CUEMU_DEVICES", 2)),
            memory: number("CUEMU_MEMORY", 16 << 30),
            driver_version: number("CUEMU_DRIVER_VERSION", 13000),
            stub: number("CUEMU_STUB", 0) != 0,
            peer_access: AtomicBool::new(number("CUEMU_PEER_ACCESS", 1) != 0),
            compute_mode: AtomicI32::new(number("CUEMU_COMPUTE_MODE", 0)),
            delay: AtomicU64::new(number("CUEMU_DELAY_NS", 0)),
            bytes_per_second: AtomicU64::new(number("CUEMU_BYTES_PER_SECOND", 0)),
            reuse_handles: AtomicBool::new(number("CUEMU_REUSE_HANDLES", 0) != 0),
        }
    })
}

/// The `nth` call from now on of `entry` (of any, where None) answers `code`; 0 stands for every call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Which call, None for all.
    pub entry: Option<Entry>,
    /// How many calls from now.
    pub nth: u64,
    /// What it answers.
    pub code: CUresult,
}

impl Rule {
    /// Reads `NAME:NTH:CODE`, NAME `*` for any.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split(':');
        let name = parts.next()?;
        let entry = if name == "*" { None } else { Some(Entry::named(name)?) };
        let nth = parts.next()?.parse().ok()?;
        let code = parts.next()?.parse().ok()?;
        parts.next().is_none().then_some(Self { entry, nth, code })
    }
}

static CALLS: [AtomicU64; TABLE.len()] = [const { AtomicU64::new(0) }; TABLE.len()];
static ARMED: AtomicBool = AtomicBool::new(false);
static RULES: Mutex<Vec<Rule>> = Mutex::new(Vec::new());

/// Adds a rule.
pub fn arm(rule: Rule) {
    RULES.lock().push(rule);
    ARMED.store(true, Relaxed);
}

/// Forgets all rules.
pub fn disarm() {
    RULES.lock().clear();
    ARMED.store(false, Relaxed);
}

/// How many rules have not struck yet.
pub fn armed() -> usize {
    RULES.lock().len()
}

/// How often an entry point was called since the process started.
pub fn calls(entry: Entry) -> u64 {
    CALLS[entry as usize].load(Relaxed)
}

/// How often any entry point was called since the process started.
pub fn all_calls() -> u64 {
    CALLS.iter().map(|count| count.load(Relaxed)).sum()
}

/// Counts a call, and answers the code of the rule that strikes, if one does.
pub fn count_call(entry: Entry) -> Result {
    CALLS[entry as usize].fetch_add(1, Relaxed);
    if !ARMED.load(Relaxed) {
        return Ok(());
    }
    let mut struck = None;
    RULES.lock().retain_mut(|rule| {
        if struck.is_some() || rule.entry.is_some_and(|wanted| wanted != entry) {
            return true;
        }
        if rule.nth > 1 {
            rule.nth -= 1;
            return true;
        }
        struck = Some(rule.code);
        rule.nth == 0
    });
    struck.map_or(Ok(()), Err)
}

static STALE: AtomicU64 = AtomicU64::new(0);

/// Counts a call with a handle that is gone.
pub fn count_stale() {
    STALE.fetch_add(1, Relaxed);
}

/// How many such calls there were.
pub fn stale_uses() -> u64 {
    STALE.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_or_refused() {
        let rule = Rule::parse("cuEventRecord:3:719").unwrap();
        assert_eq!(rule, Rule { entry: Some(Entry::cuEventRecord), nth: 3, code: 719 });
        assert_eq!(Rule::parse("*:1:2").unwrap().entry, None);
        for bad in ["", "cuNothing:1:2", "cuInit:1", "cuInit:x:2", "cuInit:1:2:3"] {
            assert_eq!(Rule::parse(bad), None, "{bad}");
        }
    }
}
