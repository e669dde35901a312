/* look_up.c: what a policy of whole hold'em plays.  cc -O2 -o look_up look_up.c, then ./look_up POLICY LINE HAND [BOARD] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *policy;

static FILE *opened(const char *name, const char *ending) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", policy, name, ending);
    FILE *file = fopen(path, "rb");
    if (!file) { perror(path); exit(1); }
    return file;
}

/* The number at [row, column] of a .npy file; of a list, at [column]. */
static double cell(const char *name, long row, long column) {
    FILE *file = opened(name, "npy");
    unsigned char head[10], bytes[8] = {0};
    char text[65536], kind = 0;
    int size = 0;
    long rows = 0, width = 0;
    if (fread(head, 1, 10, file) != 10 || memcmp(head, "\x93NUMPY\1", 7)) { fprintf(stderr, "%s\n", name); exit(1); }
    size_t length = head[8] + 256u * head[9];
    text[fread(text, 1, length, file)] = 0;
    sscanf(strstr(text, "'descr'"), "'descr': '%*c%c%d'", &kind, &size);
    int two = sscanf(strstr(text, "'shape'"), "'shape': (%ld, %ld)", &rows, &width) == 2;
    fseek(file, 10 + (long)length + ((two ? row * width : 0) + column) * size, SEEK_SET);
    if (fread(bytes, 1, size, file) != (size_t)size) { fprintf(stderr, "%s is too short\n", name); exit(1); }
    fclose(file);
    if (kind == 'f' && size == 4) { float x; memcpy(&x, bytes, 4); return x; }
    if (kind == 'f') { double x; memcpy(&x, bytes, 8); return x; }
    int64_t whole = 0;
    for (int k = 0; k < size; k++) whole |= (int64_t)bytes[k] << 8 * k;
    if (kind == 'i' && size < 8 && bytes[size - 1] & 128) whole -= (int64_t)1 << 8 * size;
    return (double)whole;
}

/* Place of a number in a list of a .npy file; -1 where it is not there, or there is no such file. */
static long place_of(const char *name, long wanted) {
    char path[4096], text[65536];
    unsigned char head[10];
    long count = 0;
    snprintf(path, sizeof path, "%s/%s.npy", policy, name);
    FILE *file = fopen(path, "rb");
    if (!file) return -1;
    if (fread(head, 1, 10, file) != 10) { fprintf(stderr, "%s\n", name); exit(1); }
    text[fread(text, 1, head[8] + 256u * head[9], file)] = 0;
    fclose(file);
    sscanf(strstr(text, "'shape'"), "'shape': (%ld", &count);
    for (long at = 0; at < count; at++) if (cell(name, 0, at) == wanted) return at;
    return -1;
}

/* The entry of a JSON list with one text a line that is `wanted`, or the text of entry `number`. */
static long entry(const char *name, const char *wanted, long number, char *found) {
    FILE *file = opened(name, "json");
    static char line[65536];
    long at = -1;
    for (; fgets(line, sizeof line, file); at++) {
        char *end = strrchr(line, '"');
        if (at < 0 || !end) continue;
        *end = 0;
        if (wanted ? !strcmp(line + 1, wanted) : at == number) { strcpy(found, line + 1); fclose(file); return at; }
    }
    fprintf(stderr, "%s has no %s\n", name, wanted);
    exit(1);
}

static void refuse(const char *text, const char *why) { fprintf(stderr, "%s: %s\n", text, why); exit(2); }

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

int main(int argc, char **argv) {
    if (argc < 4) { fprintf(stderr, "look_up POLICY LINE HAND [BOARD]\n"); return 2; }
    policy = argv[1];
    char text[65536], name[64];
    int hand[5], board[5], known = argc > 4 ? cards(argv[4], board) : 0;
    if (cards(argv[3], hand) != 2 || hand[0] == hand[1]) refuse(argv[3], "a hand has two cards");
    for (int k = 0; k < known; k++)
        if (board[k] == hand[0] || board[k] == hand[1] || (k && board[k] == board[k - 1]))
            refuse(argv[4], "a card is there twice, on the board or in the hand");
    long node = entry("tree_line", argv[2], 0, text), first = cell("tree_first", 0, node), count = cell("tree_count", 0, node);
    long slot = cell("tree_slot", 0, node), row = cell("tree_row", 0, node);
    int player = cell("tree_player", 0, node), street = cell("tree_street", 0, node);
    if (known != (street ? street + 2 : 0)) refuse(argc > 4 ? argv[4] : "", "not as many cards as the street has");
    long combination = hand[1] * (hand[1] - 1) / 2 + hand[0], canonical = 0, permutation = 0;
    if (known) {
        long rank = 0;
        for (int k = 0; k < known; k++) {
            long choose = 1;
            for (int i = 0; i <= k; i++) choose = choose * (board[k] - i) / (i + 1);
            rank += choose;
        }
        snprintf(name, sizeof name, "deck_location_%d", known);
        long location = cell(name, 0, rank);
        canonical = location / 32, permutation = location % 32;
    }
    snprintf(name, sizeof name, "deck_buckets_street%d", street);
    long bucket = cell(name, canonical, cell("deck_hole_permutation", permutation, combination));
    snprintf(name, sizeof name, "weight_street%d_player%d", street, player);
    int reached = cell(name, bucket, row) > 0; /* else: play uniformly */
    snprintf(name, sizeof name, "probability_street%d_player%d", street, player);
    double shares[64], total = 0;
    for (long k = 0; k < count; k++) total += shares[k] = reached ? cell(name, bucket, slot + k) : 1;
    for (long k = 0; k < count; k++) {
        entry("tree_label", NULL, first + k, text);
        printf("%s %.9f\n", text, shares[k] / total);
    }
    snprintf(name, sizeof name, "values_root_street%d", street);
    long column = place_of(name, node); /* of `export --values`, where a street begins */
    snprintf(name, sizeof name, "value_street%d_player%d", street, player);
    if (column >= 0) printf("value %.6f\n", cell(name, bucket, column));
    return 0;
}
