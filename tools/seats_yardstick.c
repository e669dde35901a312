/* External-sampling MCCFR of three to six players on a packed betting tree: the loop of the kernel
 * mccfr/solvers/sampling/external/external_packed.py in plain C, for tools/bench seats.  Simulated deals replace the
 * cards.  Sums are added in float32 without stochastic rounding.
 *     gcc -O3 -march=native -DSEATS=3 seats_yardstick.c -o yardstick -lm
 *     ./yardstick TREE SECONDS       (one JSON line on stdout)
 * TREE is a file that tools/bench_seats.py writes: a header of eight int64 (decisions, pots, streets, cells, batch
 * nodes, 0, 0, 0), PACKED_NODE and PACKED_POT records, then for each block of street and player int64 first cell of the
 * regrets, first cell of the sums, cells of a bucket, buckets. */
#define _GNU_SOURCE
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#define DIE(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))

enum { MOST_ACTIONS = 8, SETS = 1 << SEATS, STREETS = 4 };
static const double WARM = 0.5; /* seconds */

typedef struct { uint64_t s[4]; } Rng;
static inline uint64_t next64(Rng *r) { /* xoshiro256+ */
    uint64_t *s = r->s, x = s[0] + s[3], t = s[1] << 17;
    s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3]; s[2] ^= t; s[3] = (s[3] << 45) | (s[3] >> 19);
    return x;
}
static inline float uniform(Rng *r) { return (next64(r) >> 40) * (1.0f / 16777216.0f); }

typedef struct {
    int32_t first, slot;
    float fold_value, call_value; /* used with two players only */
    int8_t actions, player, block, folds, ends, touched, end_touched, leaves_touched;
    int32_t fold_pot, call_pot;
} Node;
typedef struct { float chips; int8_t contenders, others; int16_t unused; float paid[6]; } Pot;
typedef struct { int64_t regrets, sums, width, buckets; } Block;
typedef struct { int64_t decisions, pots, streets, cells, batch_nodes, unused[3]; } Header;

static Header head;
static Node *tree;
static Pot *pots;
static Block blocks[STREETS * SEATS];
static float *table;

typedef struct { int64_t regrets[STREETS * SEATS], sums[STREETS * SEATS]; } Hand;
static int32_t best[SETS], winners[SETS];
static float share[SETS];

static inline float reflect(float x) { x = x < 0 ? -x : x; return x >= 1 ? 1.9999999f - x : x; }
static void deal(Rng *r, Hand *h) { /* draw a hidden strength for each player, with noise on earlier streets */
    float strength[SEATS], top[SETS];
    for (int p = 0; p < SEATS; p++) {
        float seen = strength[p] = uniform(r);
        for (int street = STREETS - 1; street >= 0; street--) {
            if (street < STREETS - 1) seen = reflect(seen + (street ? 0.3f : 0.4f) * (uniform(r) - 0.5f));
            int b = SEATS * street + p;
            int64_t bucket = (int64_t)(seen * blocks[b].buckets);
            h->regrets[b] = blocks[b].regrets + bucket * blocks[b].width;
            h->sums[b] = blocks[b].sums + bucket * blocks[b].width;
        }
    }
    for (int p = 0; p < SEATS; p++) {
        int own = 1 << p;
        best[own] = own; top[own] = strength[p]; winners[own] = 1;
        for (int others = 1; others < own; others++) {
            int both = own | others, wins = strength[p] > top[others], ties = strength[p] == top[others];
            best[both] = wins ? own : ties ? best[others] | own : best[others];
            winners[both] = wins ? 1 : winners[others] + ties;
            top[both] = wins ? strength[p] : top[others];
        }
    }
}

static const int32_t WINDOW[2 * MOST_ACTIONS] = {-1, -1, -1, -1, -1, -1, -1, -1};
static const float EVEN[MOST_ACTIONS + 1] = {0, 1, 1 / 2.f, 1 / 3.f, 1 / 4.f, 1 / 5.f, 1 / 6.f, 1 / 7.f, 1 / 8.f};
static inline __m256i lanes(int actions) {
    return _mm256_loadu_si256((const __m256i *)(WINDOW + MOST_ACTIONS - actions));
}
static inline float sum8(__m256 x) {
    __m128 a = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    a = _mm_add_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}
static inline __m256 match(__m256 regret, __m256i mask, int actions) {
    __m256 x = _mm256_max_ps(regret, _mm256_setzero_ps());
    float s = sum8(x);
    if (s > 0) return _mm256_mul_ps(x, _mm256_set1_ps(1.0f / s));
    return _mm256_and_ps(_mm256_set1_ps(EVEN[actions]), _mm256_castsi256_ps(mask));
}
static inline int choose(__m256 x, int actions, float u) { /* number of prefix sums <= u */
    x = _mm256_add_ps(x, _mm256_castsi256_ps(_mm256_slli_si256(_mm256_castps_si256(x), 4)));
    x = _mm256_add_ps(x, _mm256_castsi256_ps(_mm256_slli_si256(_mm256_castps_si256(x), 8)));
    __m128 half = _mm_permute_ps(_mm256_castps256_ps128(x), 255);
    x = _mm256_add_ps(x, _mm256_set_m128(half, _mm_setzero_ps()));
    int k = __builtin_popcount((unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x, _mm256_set1_ps(u), _CMP_LE_OQ)));
    return k < actions ? k : actions - 1;
}
static inline void add(float *row, __m256i mask, __m256 x, float weight) {
    _mm256_maskstore_ps(row, mask, _mm256_fmadd_ps(x, _mm256_set1_ps(weight), _mm256_maskload_ps(row, mask)));
}
static inline float won(int32_t number, int traverser) {
    const Pot *pot = pots + number;
    float chips = pot->chips * share[pot->contenders] - pot->paid[traverser];
    for (int k = 1; k <= pot->others; k++) chips += pot[k].chips * share[pot[k].contenders];
    return chips;
}

typedef struct { __m256 sigma; float *row; const Node *node; int32_t child, path; float value; } Entry; /* 64 bytes */
static int64_t iterate(Rng *rng, Entry *q, float (*sampled)[SEATS]) { /* one deal; returns the nodes touched */
    Hand hand;
    Rng r = *rng;
    int64_t nodes = 0;
    deal(&r, &hand);
    for (int traverser = 0; traverser < SEATS; traverser++) {
        for (int set = 1; set < SETS; set++) share[set] = (float)(best[set] >> traverser & 1) / winners[set];
        int tail = 1, paths = 0;
        q->node = tree; q->row = table + hand.regrets[tree->block] + tree->slot; q->path = 0;
        for (int i = 0; i < tail; i++) {
            Entry *e = q + i;
            const Node *n = e->node;
            int actions = n->actions, path = e->path, ended = n->folds + n->ends, from = 0, to = actions - ended;
            __m256i mask = lanes(actions);
            __m256 sigma = match(_mm256_maskload_ps(e->row, mask), mask, actions);
            nodes += n->touched;
            e->child = tail;
            if (n->player == traverser) { nodes += n->leaves_touched; e->sigma = sigma; } else {
                int action = choose(sigma, actions, uniform(&r));
                float others = 1, shares[MOST_ACTIONS];
                for (int p = 0; p < SEATS; p++) if (p != n->player) others *= sampled[path][p];
                add(table + hand.sums[n->block] + n->slot, mask, sigma, 1.0f / others);
                from = action - ended; to = from + 1;
                if (from < 0) {
                    to = from; e->child = -1;
                    int folds = n->folds && action == 0;
                    nodes += folds ? n->leaves_touched - n->end_touched : n->end_touched;
                    e->value = won(folds ? n->fold_pot : n->call_pot, traverser);
                } else {
                    _mm256_storeu_ps(shares, sigma);
                    paths++;
                    for (int p = 0; p < SEATS; p++) sampled[paths][p] = sampled[path][p];
                    sampled[paths][n->player] *= shares[action];
                    path = paths;
                }
            }
            for (int k = from; k < to; k++) {
                Entry *f = q + tail++;
                f->node = tree + n->first + k; f->row = table + hand.regrets[f->node->block] + f->node->slot;
                f->path = path;
                __builtin_prefetch(f->row, 1);
                if (f->node->player != traverser)
                    __builtin_prefetch(table + hand.sums[f->node->block] + f->node->slot, 1);
            }
        }
        for (Entry *e = q + tail - 1; e >= q; e--) {
            const Node *n = e->node;
            if (n->player != traverser) { if (e->child >= 0) e->value = q[e->child].value; continue; }
            float v[MOST_ACTIONS] = {0};
            int actions = n->actions, a = 0;
            if (n->folds) v[a++] = won(n->fold_pot, traverser);
            if (n->ends) v[a++] = won(n->call_pot, traverser);
            for (const Entry *f = q + e->child; a < actions; f++) v[a++] = f->value;
            __m256 x = _mm256_loadu_ps(v);
            e->value = sum8(_mm256_mul_ps(e->sigma, x));
            add(e->row, lanes(actions), _mm256_sub_ps(x, _mm256_set1_ps(e->value)), 1.0f);
        }
    }
    *rng = r;
    return nodes;
}

static double seconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
static void *pages(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) DIE("not enough memory");
    madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

int main(int argc, char **argv) {
    FILE *f = argc == 3 ? fopen(argv[1], "r") : NULL;
    if (!f || fread(&head, sizeof head, 1, f) != 1 || head.streets != STREETS) DIE("usage: TREE SECONDS");
    tree = malloc(head.decisions * sizeof *tree);
    pots = malloc(head.pots * sizeof *pots);
    if (fread(tree, sizeof *tree, head.decisions, f) != (size_t)head.decisions
        || fread(pots, sizeof *pots, head.pots, f) != (size_t)head.pots || fread(blocks, sizeof blocks, 1, f) != 1)
        DIE("the file of the tree is too short");
    table = pages(head.cells * sizeof *table);
    Rng r = {{1, 2, 3, 4}};
    for (int i = 0; i < 64; i++) next64(&r);
    for (int64_t i = 0; i < head.cells; i++) table[i] = uniform(&r) * 1500 - 1000;
    Entry *q = aligned_alloc(64, head.decisions * sizeof *q);
    float(*sampled)[SEATS] = malloc((head.decisions + 1) * sizeof *sampled);
    for (int p = 0; p < SEATS; p++) sampled[0][p] = 1;
    double wall = seconds_of(CLOCK_MONOTONIC);
    while (seconds_of(CLOCK_MONOTONIC) < wall + WARM) iterate(&r, q, sampled);
    int64_t nodes = 0, iterations = 0;
    double began = seconds_of(CLOCK_PROCESS_CPUTIME_ID), spent = 0;
    for (double limit = atof(argv[2]); spent < limit; spent = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - began)
        for (int64_t stop = nodes + head.batch_nodes; nodes < stop; iterations++) nodes += iterate(&r, q, sampled);
    printf("{\"nodes_per_second\": %.0f, \"nodes_per_iteration\": %.2f}\n", nodes / spent, (double)nodes / iterations);
    return 0;
}
