"""All compiled code: plain functions over arrays, in the paper's letters. Kernels never raise: their callers have validated the input."""
