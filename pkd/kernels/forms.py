"""The forms of the bonus, as kernels know them."""

NO_BONUS, SUM, MAX, HOEFFDING = 0, 1, 2, 3
