// acpc_bot.cpp: plays a policy of two-player no-limit hold'em at a dealer of the ACPC protocol.  See docs/bots.md.
// Build: c++ -O2 -o acpc_bot acpc_bot.cpp.  Run: ./acpc_bot POLICY HOST PORT, with the program look_up in the same folder.
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

using Text = std::string;

static std::vector<Text> split(const Text &text, char separator) {
    std::vector<Text> parts(1);
    for (char each : text)
        if (each == separator) parts.emplace_back();
        else parts.back() += each;
    return parts;
}

static Text quoted(const Text &text) {  // as one word of a shell command
    Text out = "'";
    for (char each : text) out += each == '\'' ? Text("'\\''") : Text(1, each);
    return out + "'";
}

// Run look_up at a decision and draw an action.  look_up prints one action and its probability on each line: "r900 0.4".
static Text draw_action(const Text &reader, const std::vector<Text> &arguments) {
    static std::mt19937_64 random{std::random_device{}()};
    Text command = quoted(reader);
    for (const Text &each : arguments) command += " " + quoted(each);
    FILE *pipe = popen(command.c_str(), "r");
    std::vector<Text> actions;
    std::vector<double> shares;
    char action[64];
    double share;
    while (pipe && fscanf(pipe, "%63s %lf", action, &share) == 2) {
        if (Text(action) == "value") continue;  // the last line for a policy with EVs (export --values)
        actions.push_back(action), shares.push_back(share);
    }
    if (!pipe || pclose(pipe) || actions.empty()) std::cerr << "no answer from " << command << "\n", exit(1);
    return actions[std::discrete_distribution<>(shares.begin(), shares.end())(random)];
}

// Return the action for the state MATCHSTATE:position:number:line:cards; "" if the hand is over or the opponent acts.
static Text answer(const Text &reader, const Text &policy, const Text &state) {
    std::vector<Text> fields = split(state, ':'), streets = split(fields[4], '/'), hands = split(streets[0], '|');
    const Text &line = fields[3];
    size_t position = std::stoul(fields[1]), actions = 0;
    const Text street = split(line, '/').back();
    for (char each : street) actions += each == 'c' || each == 'f' || each == 'r';
    size_t to_act = (actions + (line.find('/') == Text::npos)) % 2;  // position 0, the big blind, acts second before the flop
    bool showdown = !hands[0].empty() && !hands[1].empty();
    if (showdown || line.find('f') != Text::npos || to_act != position) return "";
    Text board;
    for (size_t k = 1; k < streets.size(); k++) board += streets[k];
    return draw_action(reader, {policy, line, hands[position], board, fields[2]});
}

// Connect to the dealer.  Return the socket, or -1.
static int open_connection(const char *host, const char *port) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(host, port, &hints, &found)) return -1;
    int dealer = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
    int failed = connect(dealer, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return failed ? -1 : dealer;
}

static bool send_line(int dealer, const Text &line) {
    Text text = line + "\r\n";
    return write(dealer, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

int main(int count, char **arguments) {
    if (count != 4) return std::cerr << "usage: acpc_bot POLICY HOST PORT\n", 2;
    Text program = arguments[0], reader = program.substr(0, program.rfind('/') + 1) + "look_up", text;
    int dealer = open_connection(arguments[2], arguments[3]);
    if (dealer < 0 || !send_line(dealer, "VERSION:2.0.0")) return std::perror(arguments[2]), 1;
    char bytes[4096];
    for (ssize_t got; (got = read(dealer, bytes, sizeof bytes)) > 0;) {
        text.append(bytes, got);
        for (size_t end; (end = text.find('\n')) != Text::npos; text.erase(0, end + 1)) {
            Text state = text.substr(0, end);
            if (!state.empty() && state.back() == '\r') state.pop_back();
            if (state.rfind("MATCHSTATE", 0)) continue;
            Text action = answer(reader, arguments[1], state);
            if (!action.empty() && !send_line(dealer, state + ":" + action)) return std::perror("dealer"), 1;
        }
    }
}
