//! Modules: program text whose kernels the emulator knows by name, since it cannot run the text itself.
//! A kernel is a Rust function; an entry of the text that is not among them is not found.
use crate::context::Context;
use crate::handle::Table;
use crate::kernel::{self, Body};
use crate::result::*;
use crate::types::*;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;

/// A module.
pub struct Module {
    /// What the program calls it.
    pub handle: CUmodule,
    context: Arc<Context>,
    generation: u64,
    entries: Vec<Parsed>,
}

/// A kernel of a module.
pub struct Function {
    /// What the program calls it.
    pub handle: CUfunction,
    module: CUmodule,
    name: String,
    /// Where it may be launched.
    pub context: Arc<Context>,
    generation: u64,
    /// Size of each parameter.
    pub parameters: Vec<usize>,
    /// What it does.
    pub body: Body,
}

/// An entry as the text declares it.
#[derive(PartialEq, Eq, Debug)]
struct Parsed {
    name: String,
    parameters: Vec<usize>,
}

static MODULES: Table<Module> = Table::new();
static FUNCTIONS: Table<Function> = Table::new();

/// Size of a parameter's type, as in `.u64`.
fn size_of(word: &str) -> Option<usize> {
    let bits = word.strip_prefix('.')?.trim_start_matches(['u', 's', 'b', 'f']);
    bits.parse::<usize>().ok().map(|bits| bits / 8)
}

/// The entries that a PTX text declares. What does not begin as one is an image of no known sort, and a text without a
/// target cannot be compiled.
fn parse(text: &str) -> Result<Vec<Parsed>> {
    let without_comments: String =
        text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n");
    if !without_comments.trim_start().starts_with(".version") {
        return Err(CUDA_ERROR_INVALID_IMAGE);
    }
    if !without_comments.contains(".target") {
        return Err(CUDA_ERROR_INVALID_PTX);
    }
    let mut entries = Vec::new();
    for part in without_comments.split(".entry").skip(1) {
        let head = part.split('{').next().unwrap_or("");
        let (name, rest) = head.split_once('(').unwrap_or((head, ""));
        let list = rest.split(')').next().unwrap_or("");
        let parameter = |one: &str| one.split_whitespace().find_map(size_of);
        let parameters = list.split(',').filter_map(parameter).collect();
        entries.push(Parsed { name: name.trim().to_owned(), parameters });
    }
    Ok(entries)
}

/// Loads a PTX text into a context.
pub fn load(context: &Arc<Context>, text: &str) -> Result<CUmodule> {
    let entries = parse(text)?;
    let generation = context.generation.load(Acquire);
    let make = |handle| Module { handle, context: context.clone(), generation, entries };
    Ok(MODULES.insert(make).handle)
}

/// Forgets a module and its kernels.
pub fn unload(handle: CUmodule) -> Result {
    MODULES.remove(handle)?;
    for function in FUNCTIONS.select(|function| function.module == handle) {
        FUNCTIONS.remove(function.handle)?;
    }
    Ok(())
}

/// The kernel of this name.
pub fn function(handle: CUmodule, name: &str) -> Result<CUfunction> {
    let module = MODULES.get(handle)?;
    module.context.check_since(module.generation, CUDA_ERROR_INVALID_HANDLE)?;
    let parsed = module.entries.iter().find(|entry| entry.name == name).ok_or(CUDA_ERROR_NOT_FOUND)?;
    let body = kernel::named(name).ok_or(CUDA_ERROR_NOT_FOUND)?;
    let known = FUNCTIONS.select(|function| function.module == handle && function.name == name);
    if let Some(function) = known.first() {
        return Ok(function.handle);
    }
    let make = |own| Function {
        handle: own,
        module: handle,
        name: name.to_owned(),
        context: module.context.clone(),
        generation: module.generation,
        parameters: parsed.parameters.clone(),
        body,
    };
    Ok(FUNCTIONS.insert(make).handle)
}

/// The kernel of a handle, in a working context.
pub fn working(handle: CUfunction) -> Result<Arc<Function>> {
    let function = FUNCTIONS.get(handle)?;
    function.context.check_since(function.generation, CUDA_ERROR_INVALID_HANDLE)?;
    Ok(function)
}

/// Forgets the modules of a context that goes away.
pub fn forget_context(context: CUcontext) {
    for module in MODULES.select(|module| module.context.handle == context) {
        // Somebody else may have unloaded it meanwhile.
        let _ = unload(module.handle);
    }
}

/// Number of modules.
pub fn live() -> usize {
    MODULES.select(|_| true).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "// text\n.version 6.0\n.target sm_50\n.address_size 64\n";

    #[test]
    fn entries_and_their_parameters_are_read() {
        let text = format!("{HEAD}.visible .entry a()\n{{ ret; }}\n.entry b(.param .u64 p, .param .f32 q) {{}}");
        let entries = parse(&text).unwrap();
        assert_eq!(entries[0], Parsed { name: "a".into(), parameters: vec![] });
        assert_eq!(entries[1], Parsed { name: "b".into(), parameters: vec![8, 4] });
    }

    #[test]
    fn what_is_no_program_text_is_refused() {
        assert_eq!(parse("nonsense").unwrap_err(), CUDA_ERROR_INVALID_IMAGE);
        assert_eq!(parse(".version 6.0").unwrap_err(), CUDA_ERROR_INVALID_PTX);
    }
}
