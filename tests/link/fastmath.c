/* Linked with -ffast-math: its constructor makes the thread that loads it flush subnormals. */
int fast_math_is_here(void);
int fast_math_is_here(void) {
    return 1;
}
