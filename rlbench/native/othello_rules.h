// The rules of Reversi for a BOARD, which is one number of 64 bits or a vector of them: included once for each by othello.h.
//
// A run of discs is found in three steps whatever its length (a prefix scan, as Kogge and Stone add): one square on, one more, then
// twice two. Squares of the first and last column end a run along a row or a diagonal, so that none goes on at the other side; what
// is shifted beyond the first or last row is gone. Every line of a board of size 4, 6 or 8 has room for 6 flipped discs at most.

// The discs of `through` that follow `from` without a gap, d bits upward.
static inline INLINED BOARD NAME(up)(BOARD from, BOARD through, int d) {
    const BOARD two = through & (through << d);
    BOARD run = (from << d) & through;
    run |= (run << d) & through;
    run |= (run << 2 * d) & two;
    return run | ((run << 2 * d) & two);
}

static inline INLINED BOARD NAME(down)(BOARD from, BOARD through, int d) {
    const BOARD two = through & (through >> d);
    BOARD run = (from >> d) & through;
    run |= (run >> d) & through;
    run |= (run >> 2 * d) & two;
    return run | ((run >> 2 * d) & two);
}

static inline INLINED BOARD NAME(both)(BOARD mine, BOARD through, int d) {
    return (NAME(up)(mine, through, d) << d) | (NAME(down)(mine, through, d) >> d);
}

// The squares on which the player of `mine` may place a disc.
static inline INLINED BOARD NAME(legal)(const struct rules *rules, BOARD mine, BOARD theirs) {
    const BOARD inner = theirs & rules->inner;
    const BOARD found = NAME(both)(mine, inner, 1) | NAME(both)(mine, inner, 7) | NAME(both)(mine, theirs, 8) | NAME(both)(mine, inner, 9);
    return found & ~(mine | theirs) & rules->squares;
}

static inline INLINED BOARD NAME(closed)(BOARD placed, BOARD mine, BOARD through, int d) {
    const BOARD higher = NAME(up)(placed, through, d), lower = NAME(down)(placed, through, d);
    return (higher & ALL_WHERE((higher << d) & mine)) | (lower & ALL_WHERE((lower >> d) & mine));
}

// The discs that turn over under a disc on `placed`; none where that is no square.
static inline INLINED BOARD NAME(flips)(const struct rules *rules, BOARD mine, BOARD theirs, BOARD placed) {
    const BOARD inner = theirs & rules->inner;
    return NAME(closed)(placed, mine, inner, 1) | NAME(closed)(placed, mine, inner, 7) | NAME(closed)(placed, mine, theirs, 8) |
           NAME(closed)(placed, mine, inner, 9);
}
