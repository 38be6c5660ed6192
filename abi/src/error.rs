//! AML's error numbers and backend bits. Functions return the numbers negated.

use libc::c_int;

/// The call did what it says.
pub const AML_SUCCESS: c_int = 0;
/// The call failed for a reason outside the caller's arguments.
pub const AML_FAILURE: c_int = 1;
/// Memory ran out.
pub const AML_ENOMEM: c_int = 2;
/// An argument is not valid.
pub const AML_EINVAL: c_int = 3;
/// A value is out of its bound.
pub const AML_EDOM: c_int = 4;
/// The operation is not supported for these arguments.
pub const AML_ENOTSUP: c_int = 5;
/// The resource is not available for the operation.
pub const AML_EBUSY: c_int = 6;
/// The caller may not do this.
pub const AML_EPERM: c_int = 7;
/// One more than the largest error number.
pub const AML_ERROR_MAX: c_int = 8;
