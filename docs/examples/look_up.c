/* look_up.c: prints what a policy of no-limit hold'em does with a hand after any legal betting.  See docs/bots.md.
   Build: cc -O2 -o look_up look_up.c -lz -lm.  Run: ./look_up POLICY LINE HAND [BOARD [NUMBER]].
   Each line of output is an action and its probability.  A bet size that the tree lacks can stand for two of its sizes.
   With the NUMBER of the hand in a match one of them is drawn, the same in each call; without it both count. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const char *policy;

static void refuse(const char *text, const char *why) { fprintf(stderr, "%s: %s\n", text, why); exit(2); }

/* Open a file of the policy. */
static FILE *open_file(const char *name, const char *ending) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", policy, name, ending);
    FILE *file = fopen(path, "rb");
    if (!file) { perror(path); exit(1); }
    return file;
}

/* Read `count` cells of a .npy file, from [row, column] on (in a one-dimensional array from [column] on), into `found`.
   Return the bytes of a cell.  Set `kind` to u, i or f, and `length` to the number of rows. */
static int cells(const char *name, long row, long column, long count, void *found, char *kind, long *length) {
    FILE *file = open_file(name, "npy");
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

/* Convert the little-endian bytes of a cell to a number. */
static double number(const unsigned char *bytes, int size, char kind) {
    if (kind == 'f' && size == 4) { float x; memcpy(&x, bytes, 4); return x; }
    if (kind == 'f') { double x; memcpy(&x, bytes, 8); return x; }
    int64_t whole = 0;
    for (int k = 0; k < size; k++) whole |= (int64_t)bytes[k] << 8 * k;
    if (kind == 'i' && size < 8 && bytes[size - 1] & 128) whole -= (int64_t)1 << 8 * size;
    return (double)whole;
}

/* Return the number at [row, column] of a .npy file. */
static double cell(const char *name, long row, long column) {
    unsigned char bytes[8];
    char kind;
    long length;
    int size = cells(name, row, column, 1, bytes, &kind, &length);
    return number(bytes, size, kind);
}

/* --- from cards to a bucket --- */

/* Parse cards into numbers 4 * rank + suit, in ascending order.  Return how many there are. */
static int cards(const char *text, int *out) {
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

/* Return the bucket of a hand on a board of `known` cards. */
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
    uLongf bytes = sizeof row; /* one, two or four bytes for each of the 1,326 hands */
    char kind;
    snprintf(name, sizeof name, "deck_buckets_street%d", street);
    cells(name, 0, start, packed, stream, &kind, &length);
    if (uncompress(row, &bytes, stream, packed) != Z_OK || bytes % 1326) refuse(name, "is damaged");
    int size = bytes / 1326;
    return number(row + size * (long)cell("deck_hole_permutation", permutation, combination), size, 'u');
}

/* --- the betting at the table; amounts are chips of the whole hand --- */

enum { MOST = 6 };

static int players = 2, to_act, street;
static unsigned acted, folded, barred; /* sets of players, bit i for player i; `barred`: have acted before a short all-in */
static double put_in[MOST], stacks[MOST], dead, least_bet, least_call, last_raise;
static int whole = 1; /* 1: amounts are rounded to whole chips */

static double most(double a, double b) { return a > b ? a : b; }

static double level(void) { /* chips in the pot of a player after a call */
    double found = least_call;
    for (int k = 0; k < players; k++) found = most(found, put_in[k]);
    return found;
}

static int facing(void) { return put_in[to_act] < level(); }

static double pot_after_call(void) {
    double pot = dead + level() - put_in[to_act];
    for (int k = 0; k < players; k++) pot += put_in[k];
    return pot;
}

static double all_in(void) { /* the largest raise that an opponent can call, at least the smallest legal one */
    double others = level() + last_raise;
    for (int k = 0; k < players; k++)
        if (k != to_act && !(folded >> k & 1)) others = most(others, stacks[k]);
    return stacks[to_act] < others ? stacks[to_act] : others;
}

static int may_raise(void) {
    double call = level(), able = 0;
    if (call >= stacks[to_act] || (barred >> to_act & 1 && call - put_in[to_act] < last_raise)) return 0;
    for (int k = 0; k < players; k++) able += k != to_act && !(folded >> k & 1) && stacks[k] > call;
    return able > 0;
}

static int next_from(int first) { /* the first player from `first` on who has to act, or -1 */
    int able = 0, found = -1;
    double most_in = 0, call = level();
    for (int k = 0; k < players; k++) most_in = most(most_in, put_in[k]);
    for (int step = 0; step < players; step++) {
        int player = (first + step) % players;
        if (put_in[player] >= stacks[player] || folded >> player & 1) continue;
        able++;
        if (found < 0 && (put_in[player] < call || !(acted >> player & 1))) found = player;
    }
    return found < 0 || (able == 1 && put_in[found] >= most_in) ? -1 : found;
}

/* Begin a hand: blinds and antes are in the pot. */
static void begin(void) {
    for (int k = 0; k < players; k++) put_in[k] = cell("tree_put_in", 0, k);
    street = 0, acted = folded = barred = 0, last_raise = least_bet, to_act = next_from(players == 2 ? 1 : 2);
}

/* Apply an action at the table: c, f, or r with the player's chips in the pot after the raise. */
static void act(char action, double target) {
    unsigned own = 1u << to_act;
    acted |= own;
    if (action == 'r') {
        double size = target - level();
        barred = size < last_raise && target >= stacks[to_act] ? acted : 0;
        put_in[to_act] = target, last_raise = most(size, last_raise);
    } else if (action == 'f') folded |= own;
    else put_in[to_act] = level() < stacks[to_act] ? level() : stacks[to_act];
    unsigned left = ((1u << players) - 1) & ~folded;
    if (!(left & (left - 1))) { to_act = -1; return; }
    to_act = next_from((to_act + 1) % players);
    if (to_act >= 0 || ++street == 4) return;
    acted = barred = 0, last_raise = least_bet, to_act = next_from(0);
}

/* Read the stacks, blinds and antes of the policy's game. */
static void load(void) {
    static char text[1 << 22];
    FILE *file = open_file("meta", "json");
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    const char *at = strstr(text, "\"game\": {"), *blinds = at ? strstr(at, "\"blinds\"") : 0, *deep = at ? strstr(at, "\"stack\"") : 0;
    double stack = 0, ante = 0;
    if (!blinds || !deep || sscanf(blinds, "\"blinds\": [ %*f , %lf", &least_bet) != 1 || sscanf(deep, "\"stack\": %lf", &stack) != 1)
        refuse(policy, "is not a policy of no-limit hold'em");
    const char *seats = strstr(at, "\"seats\": "), *each = strstr(at, "\"stacks\": ["), *done = strstr(text, "\"share_of_run\": ");
    if (seats) players = atoi(seats + 9);
    if (players < 2 || players > MOST) refuse(policy, "has more than six players");
    for (int street = 1; street < 4; street++) {
        char history[4096];
        snprintf(history, sizeof history, "%s/history_street%d.npy", policy, street);
        FILE *recall = fopen(history, "rb");
        if (recall) refuse(policy, "has buckets with recall, which this program does not look up");
    }
    double share = done ? atof(done + 16) : 1, largest = 0;
    if (share > 0 && share < 1) fprintf(stderr, "warning: the policy is unfinished, after %.2g %% of its run\n", 100 * share);
    if (each) each = strchr(each, '[') + 1;
    for (int k = 0; k < players; k++) {
        char *end = NULL;
        double own = each ? strtod(each, &end) : 0, posted = players > 2 ? cell("tree_pots_dead", 0, k) : 0;
        stacks[k] = (each && end != each ? own : stack) - posted, dead += posted, largest = most(largest, stacks[k]);
        if (each && end != each) each = end + strspn(end, " \n,");
    }
    const char *antes = strstr(at, "\"ante\": ");
    if (antes && !dead) ante = atof(antes + 8);
    least_call = least_bet + ante;
    for (int k = 0; k < players; k++) whole &= fmod(cell("tree_put_in", 0, k), 1) == 0;
    whole &= fmod(least_bet, 1) == 0 && fmod(largest, 1) == 0;
}

/* --- from the betting to nodes of the tree --- */

typedef struct { long node; double probability; } Reading; /* a node that the betting can stand for */

static char **labels;
static Reading readings[4096];
static int reading_count;

/* Read the label of each node: f, c or r with an amount. */
static void load_labels(void) {
    static char text[4096];
    FILE *file = open_file("tree_label", "json");
    labels = calloc(1 << 24, sizeof *labels);
    for (long node = -1; fgets(text, sizeof text, file); node++) {
        char *end = strrchr(text, '"');
        if (node < 0 || !end) continue;
        *end = 0;
        labels[node] = strcpy(malloc(strlen(text)), text + 1);
    }
    fclose(file);
}

/* Return a field of a node of the tree. */
static long tree(const char *field, long node) {
    char name[64];
    snprintf(name, sizeof name, "tree_%s", field);
    return cell(name, 0, node);
}

static int decides(long node) { return node >= 0 && tree("kind", node) == 0; }

/* Return the first child whose label begins with a letter, or -1.  For r it is the smallest raise. */
static long child_of(long node, char label) {
    long first = tree("first", node), end = first + tree("count", node);
    while (first < end && labels[first][0] != label) first++;
    return first < end ? first : -1;
}

/* Return the chips in the pot of the player whose action led to a node. */
static double raised_to(long child) { return cell("tree_put_in", child, tree("player", tree("parent", child))); }

/* Return the size of a raise in the tree as a share of the pot after a call. */
static double size_of(long node, long child) {
    int own = tree("player", node);
    double before = least_call, pot = dead;
    for (int k = 0; k < players; k++) before = most(before, cell("tree_put_in", node, k));
    for (int k = 0; k < players; k++) pot += k == own ? before : cell("tree_put_in", node, k);
    return (raised_to(child) - before) / pot;
}

/* Return 1 if the raise to a node puts its player, or all opponents who call, all-in. */
static int is_all_in(long child) {
    int own = tree("player", tree("parent", child));
    double others = 0;
    for (int k = 0; k < players; k++)
        if (k != own) others = most(others, stacks[k]);
    return raised_to(child) >= (stacks[own] < others ? stacks[own] : others);
}

/* Return the child of a check or call, or without one of a fold; `folds`: of a fold, or without one of a check or call.
   Without both, return the first child, the smallest raise. */
static long passed(long node, int folds) {
    long found = child_of(node, folds ? 'f' : 'c');
    if (found < 0) found = child_of(node, folds ? 'c' : 'f');
    return found < 0 ? tree("first", node) : found;
}

/* Return the set of players who have folded in the tree before a node. */
static unsigned folded_in_tree(long node) {
    unsigned found = 0;
    for (; node; node = tree("parent", node))
        if (labels[node][0] == 'f') found |= 1u << tree("player", tree("parent", node));
    return found;
}

/* Return 1 if an opponent who has not folded in the tree has put most chips in at the table. */
static int has_bet(long node) {
    unsigned gone = folded_in_tree(node);
    double largest = 0;
    for (int k = 0; k < players; k++) largest = most(largest, put_in[k]);
    for (int k = 0; k < players; k++)
        if (put_in[k] == largest && k != to_act && !(gone >> k & 1)) return 1;
    return 0;
}

/* In a hand that ended by folds in the tree, find the last fold there that was a call at the table.  Return the smallest
   raise in its place, or -1. */
static long without_last_fold(long node) {
    if (labels[node][0] != 'f') return -1;
    for (; node; node = tree("parent", node)) {
        long above = tree("parent", node);
        int player = tree("player", above);
        int plays_on = !(folded >> player & 1) && put_in[player] > cell("tree_put_in", 0, player);
        if (labels[node][0] == 'f' && plays_on && child_of(above, 'r') >= 0) return child_of(above, 'r');
    }
    return -1;
}

/* Return the tree's decision of the player who acts at the table, from a reading's node on; -1 if there is none. */
static long decision_at(long node) {
    while (node >= 0) {
        if (!decides(node)) { node = without_last_fold(node); continue; }
        int player = tree("player", node), on = tree("street", node);
        if (on == street && player == to_act) return node;
        if (on > street || (on == street && folded_in_tree(node) >> to_act & 1)) return -1;
        node = passed(node, folded >> player & 1);
    }
    return -1;
}

/* Add a reading; one of the same node gets the sum of both probabilities. */
static void add(Reading *to, int *count, long node, double probability) {
    for (int k = 0; k < *count; k++)
        if (to[k].node == node) { to[k].probability += probability; return; }
    if (*count == 4096) refuse("LINE", "has too many readings");
    to[(*count)++] = (Reading){node, probability};
}

/* Translate an action at the table: add each node that it can stand for after a reading. */
static void follow(Reading from, char action, double target, Reading *to, int *count) {
    long node = decision_at(from.node), first = node < 0 ? -1 : child_of(node, 'r');
    double probability = from.probability;
    if (node < 0) { add(to, count, from.node, probability); return; }
    if (action == 'f') { add(to, count, child_of(node, 'f') < 0 ? node : child_of(node, 'f'), probability); return; }
    if (action == 'c' || first < 0) { add(to, count, passed(node, 0), probability); return; } /* without raises in the tree, a bet is a call */
    long above = first, end = tree("first", node) + tree("count", node);
    double share = (target - level()) / pot_after_call(), tops = raised_to(end - 1);
    int deep = most(target, tops) <= 2 * (target < tops ? target : tops);
    while (above < end && size_of(node, above) < share - 1e-9) above++;
    if (target >= all_in() && is_all_in(end - 1) && deep) above = end;
    if (above == first || above == end) { add(to, count, above == end ? end - 1 : first, probability); return; }
    double small = size_of(node, above - 1), large = size_of(node, above);
    double lower = most(0, (large - share) * (1 + small) / ((large - small) * (1 + share)));
    if (lower >= 1e-9) add(to, count, above - 1, probability * lower);
    add(to, count, above, probability * (lower < 1e-9 ? 1 : 1 - lower));
}

/* Translate an action of the tree to the table.  Return the chips to raise to, 0 for a check or call, -1 for a fold. */
static double real_action(long node, long child) {
    double before = level(), least = before + last_raise, own = stacks[to_act];
    char label = labels[child][0];
    if (label == 'f' || (label == 'c' && facing() && !has_bet(node))) return facing() ? -1 : 0;
    if (label == 'c' || !may_raise()) return 0;
    if (is_all_in(child)) return all_in();
    double target = before + size_of(node, child) * pot_after_call();
    if (whole) target = floor(target + 0.5);
    return target < least ? (least < own ? least : own) : target < own ? target : own;
}

/* Fill in a bucket's probability of each action at a decision.  Return the number of actions. */
static long strategy(long node, long bucket, double *shares) {
    char weight[64], probability[64];
    int player = tree("player", node), on = tree("street", node);
    snprintf(weight, sizeof weight, "weight_street%d_player%d", on, player);
    snprintf(probability, sizeof probability, "probability_street%d_player%d", on, player);
    int reached = cell(weight, bucket, tree("row", node)) > 0; /* else: play uniformly */
    long slot = tree("slot", node), count = tree("count", node);
    double total = 0;
    for (long k = 0; k < count; k++) total += shares[k] = reached ? cell(probability, bucket, slot + k) : 1;
    for (long k = 0; k < count; k++) shares[k] /= total;
    return count;
}

/* Translate an own action before the flop.  Several actions of the tree can be one at the table: a fold to a limp is a
   check.  The hand's probabilities are their weights. */
static void follow_own(Reading from, char action, double target, long bucket, Reading *to, int *count) {
    double shares[256], total = 0, done = action == 'r' ? target : action == 'c' ? 0 : -1;
    long node = decision_at(from.node), same = 0, first = node < 0 ? 0 : tree("first", node), end = node < 0 ? 0 : strategy(node, bucket, shares);
    for (long k = 0; k < end; k++) {
        int is = fabs(real_action(node, first + k) - done) < 1e-9;
        same += is, shares[k] = is ? shares[k] : 0, total += shares[k];
    }
    if (same < 2 || total == 0) { follow(from, action, target, to, count); return; }
    for (long k = 0; k < end; k++)
        if (shares[k] > 0) add(to, count, first + k, from.probability * shares[k] / total);
}

/* Keep one of the readings, drawn by its probability.  The random number is a hash of the hand's number and the action's
   place in the line, so each call draws the same. */
static void draw(uint32_t played, uint32_t place) {
    uint32_t mixed = ((played * 64 + place) ^ 0x5bd1e995u) * 0x9e3779b1u;
    double left = (mixed ^ mixed >> 15) * 0x85ebca6bu / 4294967296.0;
    int k = 0;
    while (k < reading_count - 1 && (left -= readings[k].probability) >= 0) k++;
    readings[0] = (Reading){readings[k].node, 1}, reading_count = 1;
}

/* Follow a line at the table and in the tree.  own: the player with the hand, whose bucket before the flop is `bucket`;
   -1: follow it at the table only, to find the player who acts after it. */
static void play(const char *line, const char *played, int own, long bucket) {
    static Reading after[4096];
    begin(), readings[0] = (Reading){0, 1}, reading_count = 1;
    for (int place = 0; *line;) {
        char action = *line++, *end = (char *)line;
        if (action == '/') continue;
        double target = action == 'r' ? strtod(line, &end) : 0;
        if (!strchr("cfr", action) || (action == 'r' && end == line) || to_act < 0) refuse(line - 1, "is not an action, or no player can act here");
        int count = 0;
        for (int k = 0; own >= 0 && k < reading_count; k++)
            if (to_act == own && street == 0) follow_own(readings[k], action, target, bucket, after, &count);
            else follow(readings[k], action, target, after, &count);
        if (own >= 0) memcpy(readings, after, sizeof *after * (reading_count = count));
        if (played && own >= 0) draw(strtoul(played, NULL, 10), place++);
        line = end;
        act(action, target);
    }
    if (to_act < 0) refuse("LINE", "leads to no decision");
}

/* --- the output --- */

static double actions[1024], shares[1024];
static int action_count;

/* Add to the probability of an action at the table. */
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

/* Add the actions of a hand after one reading. */
static void answer(Reading reading, long bucket) {
    double own[256];
    long node = decision_at(reading.node);
    if (node < 0) {
        int committed = !decides(reading.node) && labels[reading.node][0] != 'f'; /* the hand is over in the tree, not by a fold */
        int calls = !(folded_in_tree(reading.node) >> to_act & 1) && (committed || has_bet(reading.node));
        collect(facing() && !calls ? -1 : 0, reading.probability);
        return;
    }
    for (long k = 0, count = strategy(node, bucket, own); k < count; k++)
        collect(real_action(node, tree("first", node) + k), reading.probability * own[k]);
}

/* Print the hand's value in chips, which a policy of `export --values` has for the first decisions of a street. */
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
    for (long column = 0; column < count; column++)
        if (cell(name, 0, column) == node) {
            snprintf(name, sizeof name, "value_street%d_player%d", street, to_act);
            printf("value %.6f\n", cell(name, bucket, column));
            return;
        }
}

int main(int argc, char **argv) {
    if (argc < 4) { fprintf(stderr, "usage: look_up POLICY LINE HAND [BOARD [NUMBER]]\n"); return 2; }
    policy = argv[1];
    int hand[5], board[5], known = argc > 4 ? cards(argv[4], board) : 0;
    if (cards(argv[3], hand) != 2 || hand[0] == hand[1]) refuse(argv[3], "a hand has two cards");
    for (int k = 0; k < known; k++)
        if (board[k] == hand[0] || board[k] == hand[1] || (k && board[k] == board[k - 1]))
            refuse(argv[4], "a card is there twice, on the board or in the hand");
    load(), load_labels();
    play(argv[2], NULL, -1, 0);
    play(argv[2], argc > 5 ? argv[5] : NULL, to_act, bucket_of(0, hand, board, 0));
    if (known != (street ? street + 2 : 0)) refuse(argc > 4 ? argv[4] : "", "not as many cards as the street has");
    long bucket = bucket_of(street, hand, board, known);
    for (int k = 0; k < reading_count; k++) answer(readings[k], bucket);
    for (int k = 0; k < action_count; k++)
        if (actions[k] > 0) printf("r%.15g %.9f\n", actions[k], shares[k]);
        else printf("%s %.9f\n", actions[k] ? "f" : "c", shares[k]);
    if (reading_count == 1) print_value(decision_at(readings[0].node), bucket);
    return 0;
}
