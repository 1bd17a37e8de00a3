"""All compiled code: plain functions over arrays, in the paper's letters. Kernels never raise; whoever calls them has validated the input."""
