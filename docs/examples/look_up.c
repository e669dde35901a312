/* look_up.c: what a policy of no-limit hold'em plays, after any legal bets.  docs/bots.md describes the steps.
   cc -O2 -o look_up look_up.c -lz -lm, then ./look_up POLICY LINE HAND [BOARD [NUMBER]]
   With the NUMBER of a played hand, the sizes that the tree does not have are drawn. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const char *policy;

static void refuse(const char *text, const char *why) { fprintf(stderr, "%s: %s\n", text, why); exit(2); }

static FILE *opened(const char *name, const char *ending) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", policy, name, ending);
    FILE *file = fopen(path, "rb");
    if (!file) { perror(path); exit(1); }
    return file;
}

/* The cells [row, column] .. of a .npy file (of a list: [column] ..), `count` of them, as they are; returns the width of
   a cell in bytes.  `kind` becomes u, i or f, `length` the number of rows. */
static int cells(const char *name, long row, long column, long count, void *found, char *kind, long *length) {
    FILE *file = opened(name, "npy");
    unsigned char head[10];
    char text[65536];
    int size = 0;
    long width = 0;
    if (fread(head, 1, 10, file) != 10 || memcmp(head, "\x93NUMPY\1", 7)) refuse(name, "is no .npy file");
    size_t start = 10 + head[8] + 256u * head[9];
    text[fread(text, 1, start - 10, file)] = 0;
    sscanf(strstr(text, "'descr'"), "'descr': '%*c%c%d'", kind, &size);
    int two = sscanf(strstr(text, "'shape'"), "'shape': (%ld, %ld)", length, &width) == 2;
    fseek(file, (long)start + ((two ? row * width : 0) + column) * size, SEEK_SET);
    if (fread(found, size, count, file) != (size_t)count) refuse(name, "is too short");
    fclose(file);
    return size;
}

static double number(const unsigned char *bytes, int size, char kind) {
    if (kind == 'f' && size == 4) { float x; memcpy(&x, bytes, 4); return x; }
    if (kind == 'f') { double x; memcpy(&x, bytes, 8); return x; }
    int64_t whole = 0;
    for (int k = 0; k < size; k++) whole |= (int64_t)bytes[k] << 8 * k;
    if (kind == 'i' && size < 8 && bytes[size - 1] & 128) whole -= (int64_t)1 << 8 * size;
    return (double)whole;
}

static double cell(const char *name, long row, long column) {
    unsigned char bytes[8];
    char kind;
    long length;
    int size = cells(name, row, column, 1, bytes, &kind, &length);
    return number(bytes, size, kind);
}

/* --- cards to bucket --- */

static int cards(const char *text, int *out) { /* ascending */
    static const char *ranks = "23456789TJQKA23456789tjqka", *suits = "cdhsCDHS";
    int count = 0;
    for (const char *at = text; *at; at += 2, count++) {
        const char *rank = strchr(ranks, at[0]), *suit = at[1] ? strchr(suits, at[1]) : NULL;
        if (!rank || !suit || count == 5) refuse(text, "cards are written as Kc7d2s");
        int card = 4 * (int)((rank - ranks) % 13) + (int)((suit - suits) % 4), k = count;
        for (; k > 0 && out[k - 1] > card; k--) out[k] = out[k - 1];
        out[k] = card;
    }
    return count;
}

static long bucket_of(int street, const int *hand, const int *board, int known) {
    char name[64];
    long combination = hand[1] * (hand[1] - 1) / 2 + hand[0], canonical = 0, permutation = 0, rank = 0;
    for (int k = 0; k < known; k++) {
        long choose = 1;
        for (int i = 0; i <= k; i++) choose = choose * (board[k] - i) / (i + 1);
        rank += choose;
    }
    if (known) {
        snprintf(name, sizeof name, "deck_location_%d", known);
        long location = cell(name, 0, rank);
        canonical = location / 32, permutation = location % 32;
    }
    snprintf(name, sizeof name, "board_starts_street%d", street);
    long start = cell(name, 0, canonical), packed = cell(name, 0, canonical + 1) - start, length;
    unsigned char stream[8192], row[4 * 1326];
    uLongf bytes = sizeof row; /* one, two or four for each combination */
    char kind;
    snprintf(name, sizeof name, "deck_buckets_street%d", street);
    cells(name, 0, start, packed, stream, &kind, &length);
    if (uncompress(row, &bytes, stream, packed) != Z_OK || bytes % 1326) refuse(name, "is damaged");
    int size = bytes / 1326;
    return number(row + size * (long)cell("deck_hole_permutation", permutation, combination), size, 'u');
}

/* --- betting to nodes --- */

typedef struct { long node, closed; double probability; } Reading; /* node -1: call, which leads to `closed` */

static char **labels;
static Reading readings[4096];
static int reading_count = 1;
static double stack, least_bet, put_in[2], last_raise;
static int to_act, street, acted;

static void load(void) {
    FILE *file = opened("meta", "json");
    static char text[1 << 22];
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    const char *at = strstr(text, "\"game\": {"), *blinds = at ? strstr(at, "\"blinds\"") : 0, *deep = at ? strstr(at, "\"stack\"") : 0;
    if (!blinds || !deep || sscanf(blinds, "\"blinds\": [ %*f , %lf", &least_bet) != 1 || sscanf(deep, "\"stack\": %lf", &stack) != 1)
        refuse(policy, "is no policy of no-limit hold'em");
    const char *seats = strstr(at, "\"seats\": "), *done = strstr(text, "\"share_of_run\": ");
    if (seats && atoi(seats + 9) > 2) refuse(policy, "is for more than two players, and this reader for two");
    double share = done ? atof(done + 16) : 1;
    if (share > 0 && share < 1) fprintf(stderr, "unfinished: %.2g %% of its run\n", 100 * share);
    file = opened("tree_label", "json");
    labels = calloc(1 << 24, sizeof *labels);
    for (long node = -1; fgets(text, sizeof text, file); node++) {
        char *end = strrchr(text, '"');
        if (node < 0 || !end) continue;
        *end = 0;
        labels[node] = strcpy(malloc(strlen(text)), text + 1);
    }
    fclose(file);
    put_in[0] = cell("tree_put_in", 0, 0), put_in[1] = cell("tree_put_in", 0, 1);
    readings[0] = (Reading){0, -1, 1}, to_act = 1, last_raise = least_bet;
}

static double most(double a, double b) { return a > b ? a : b; }
static int decides(long node) { return node >= 0 && cell("tree_kind", 0, node) == 0; }
static double level(long node) { return most(cell("tree_put_in", node, 0), cell("tree_put_in", node, 1)); }

/* The size of a raise in the tree, as a share of the pot after the call. */
static double size_of(long node, long child) {
    double before = level(node);
    return (cell("tree_put_in", child, cell("tree_player", 0, node)) - before) / (2 * before);
}

static void add(Reading *to, int *count, long node, long closed, double probability) {
    for (int k = 0; k < *count; k++)
        if (to[k].node == node && to[k].closed == closed) { to[k].probability += probability; return; }
    if (*count == 4096) refuse("LINE", "has too many readings");
    to[(*count)++] = (Reading){node, closed, probability};
}

static void follow(Reading from, char action, double target, Reading *to, int *count) {
    if (action == 'c' && from.closed >= 0) { add(to, count, from.closed, -1, from.probability); return; }
    if (!decides(from.node)) { add(to, count, from.node, from.closed, from.probability); return; }
    long first = cell("tree_first", 0, from.node), end = first + cell("tree_count", 0, from.node), call = -1, fold = -1;
    while (first < end && strchr("cf", labels[first][0])) { *(labels[first][0] == 'c' ? &call : &fold) = first; first++; }
    if (action != 'r') { add(to, count, action == 'f' ? fold : call >= 0 ? call : first, -1, from.probability); return; }
    if (first == end) { /* no raise in the tree: a bet is a call */
        int closes = !decides(call) || cell("tree_street", 0, call) != cell("tree_street", 0, from.node);
        add(to, count, closes && decides(call) ? -1 : call, closes && decides(call) ? call : -1, from.probability);
        return;
    }
    double before = most(put_in[0], put_in[1]), share = (target - before) / (2 * before);
    long above = first;
    while (above < end && size_of(from.node, above) < share - 1e-9) above++;
    if (target >= stack && level(end - 1) >= stack) above = end;
    if (above == first || above == end) { add(to, count, above == end ? end - 1 : first, -1, from.probability); return; }
    double small = size_of(from.node, above - 1), large = size_of(from.node, above);
    double lower = most(0, (large - share) * (1 + small) / ((large - small) * (1 + share)));
    if (lower >= 1e-9) add(to, count, above - 1, -1, from.probability * lower);
    add(to, count, above, -1, from.probability * (lower < 1e-9 ? 1 : 1 - lower));
}

/* Keep one of the readings, drawn by its probability; the same one whenever the hand comes here. */
static void draw(uint32_t played, uint32_t place) {
    uint32_t mixed = ((played * 64 + place) ^ 0x5bd1e995u) * 0x9e3779b1u;
    double left = (mixed ^ mixed >> 15) * 0x85ebca6bu / 4294967296.0;
    int k = 0;
    while (k < reading_count - 1 && (left -= readings[k].probability) >= 0) k++;
    readings[0] = readings[k], readings[0].probability = 1, reading_count = 1;
}

static void play(const char *line, const char *played) {
    static Reading after[4096];
    int place = 0;
    while (*line) {
        char action = *line++, *end = (char *)line;
        if (action == '/') continue;
        double target = action == 'r' ? strtod(line, &end) : 0, before = most(put_in[0], put_in[1]);
        if (!strchr("cfr", action) || (action == 'r' && end == line) || to_act < 0) refuse(line - 1, "is no action here");
        int count = 0;
        for (int k = 0; k < reading_count; k++) follow(readings[k], action, target, after, &count);
        memcpy(readings, after, sizeof *after * (reading_count = count));
        if (played) draw(strtoul(played, NULL, 10), place++);
        line = end;
        if (action == 'r') last_raise = most(last_raise, target - before);
        if (action != 'f') put_in[to_act] = action == 'r' ? target : before;
        if (action == 'r' || (action == 'c' && !acted && before < stack)) { to_act = 1 - to_act, acted = 1; continue; }
        street++, to_act = action == 'f' || before >= stack || street == 4 ? -1 : 0, acted = 0, last_raise = least_bet;
    }
    if (to_act < 0) refuse("LINE", "leads to no decision");
}

/* --- the answer --- */

/* What to do in the game for a tree's action: chips to raise to, -1 for a fold, 0 for a call. */
static double real_action(long node, long child) {
    double before = most(put_in[0], put_in[1]);
    if (labels[child][0] == 'f') return put_in[to_act] < before ? -1 : 0;
    if (labels[child][0] == 'c' || before >= stack) return 0;
    if (level(child) >= stack) return stack;
    double target = before + size_of(node, child) * 2 * before, least = before + last_raise;
    if (fmod(stack, 1) == 0 && fmod(least_bet, 1) == 0) target = floor(target + 0.5);
    return target < least ? (least < stack ? least : stack) : target < stack ? target : stack;
}

static double actions[1024], shares[1024];
static int action_count;

static void collect(double action, double share) {
    int k = 0;
    while (k < action_count && actions[k] < action) k++;
    if (k == action_count || actions[k] != action) {
        memmove(actions + k + 1, actions + k, sizeof *actions * (action_count - k));
        memmove(shares + k + 1, shares + k, sizeof *shares * (action_count++ - k));
        actions[k] = action, shares[k] = 0;
    }
    shares[k] += share;
}

static void answer(Reading reading, long bucket) {
    char weight[64], probability[64];
    double total = 0;
    if (!decides(reading.node)) { collect(0, reading.probability); return; }
    int player = cell("tree_player", 0, reading.node);
    snprintf(weight, sizeof weight, "weight_street%d_player%d", street, player);
    snprintf(probability, sizeof probability, "probability_street%d_player%d", street, player);
    int reached = cell(weight, bucket, cell("tree_row", 0, reading.node)) > 0; /* else: play uniformly */
    long first = cell("tree_first", 0, reading.node), slot = cell("tree_slot", 0, reading.node), count = cell("tree_count", 0, reading.node);
    for (long k = 0; k < count; k++) total += reached ? cell(probability, bucket, slot + k) : 1;
    for (long k = 0; k < count; k++) {
        double share = reached ? cell(probability, bucket, slot + k) : 1;
        collect(real_action(reading.node, first + k), reading.probability * share / total);
    }
}

/* Of `export --values`: the value in chips where a street begins. */
static void print_value(long node, long bucket) {
    char name[64], path[4200], kind;
    unsigned char first[8];
    long count;
    snprintf(name, sizeof name, "values_root_street%d", street);
    snprintf(path, sizeof path, "%s/%s.npy", policy, name);
    FILE *file = fopen(path, "rb");
    if (!file) return;
    fclose(file);
    cells(name, 0, 0, 1, first, &kind, &count);
    for (long at = 0; at < count; at++)
        if (cell(name, 0, at) == node) {
            snprintf(name, sizeof name, "value_street%d_player%d", street, to_act);
            printf("value %.6f\n", cell(name, bucket, at));
            return;
        }
}

int main(int argc, char **argv) {
    if (argc < 4) { fprintf(stderr, "look_up POLICY LINE HAND [BOARD [NUMBER]]\n"); return 2; }
    policy = argv[1];
    int hand[5], board[5], known = argc > 4 ? cards(argv[4], board) : 0;
    if (cards(argv[3], hand) != 2 || hand[0] == hand[1]) refuse(argv[3], "a hand has two cards");
    for (int k = 0; k < known; k++)
        if (board[k] == hand[0] || board[k] == hand[1] || (k && board[k] == board[k - 1]))
            refuse(argv[4], "a card is there twice, on the board or in the hand");
    load();
    play(argv[2], argc > 5 ? argv[5] : NULL);
    if (known != (street ? street + 2 : 0)) refuse(argc > 4 ? argv[4] : "", "not as many cards as the street has");
    long bucket = bucket_of(street, hand, board, known);
    for (int k = 0; k < reading_count; k++) answer(readings[k], bucket);
    for (int k = 0; k < action_count; k++)
        if (actions[k] > 0) printf("r%.15g %.9f\n", actions[k], shares[k]);
        else printf("%s %.9f\n", actions[k] ? "f" : "c", shares[k]);
    if (reading_count == 1) print_value(readings[0].node, bucket);
    return 0;
}
