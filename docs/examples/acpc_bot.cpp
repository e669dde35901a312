// acpc_bot.cpp: plays a policy at a dealer of the ACPC protocol.  docs/bots.md describes the steps.
// c++ -O2 -o acpc_bot acpc_bot.cpp, then ./acpc_bot POLICY HOST PORT beside the program look_up
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

static std::vector<Text> split(const Text &text, char at) {
    std::vector<Text> parts(1);
    for (char each : text)
        if (each == at) parts.emplace_back();
        else parts.back() += each;
    return parts;
}

static Text quoted(const Text &text) {  // for a shell
    Text out = "'";
    for (char each : text) out += each == '\'' ? Text("'\\''") : Text(1, each);
    return out + "'";
}

// Draw an action at a decision from the probabilities that look_up prints, a line each: "r900 0.4".
static Text decision(const Text &reader, const std::vector<Text> &arguments) {
    static std::mt19937_64 random{std::random_device{}()};
    Text command = quoted(reader);
    for (const Text &each : arguments) command += " " + quoted(each);
    FILE *pipe = popen(command.c_str(), "r");
    std::vector<Text> actions;
    std::vector<double> shares;
    char action[64];
    double share;
    while (pipe && fscanf(pipe, "%63s %lf", action, &share) == 2) {
        if (Text(action) == "value") continue;  // of `export --values`
        actions.push_back(action), shares.push_back(share);
    }
    if (!pipe || pclose(pipe) || actions.empty()) std::cerr << "no answer of " << command << "\n", exit(1);
    return actions[std::discrete_distribution<>(shares.begin(), shares.end())(random)];
}

// The answer to MATCHSTATE:position:number:line:cards, or nothing if there is nothing to decide.
static Text answer(const Text &reader, const Text &policy, const Text &state) {
    std::vector<Text> fields = split(state, ':'), streets = split(fields[4], '/'), hands = split(streets[0], '|');
    const Text &line = fields[3];
    size_t position = std::stoul(fields[1]), actions = 0;
    const Text street = split(line, '/').back();
    for (char each : street) actions += each == 'c' || each == 'f' || each == 'r';
    size_t to_act = (actions + (line.find('/') == Text::npos)) % 2;  // the big blind, position 0, is second at first
    bool shown = !hands[0].empty() && !hands[1].empty();
    if (shown || line.find('f') != Text::npos || to_act != position) return "";
    Text board;
    for (size_t dealt = 1; dealt < streets.size(); dealt++) board += streets[dealt];
    return decision(reader, {policy, line, hands[position], board, fields[2]});
}

static int connected(const char *host, const char *port) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(host, port, &hints, &found)) return -1;
    int dealer = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
    int refused = connect(dealer, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return refused ? -1 : dealer;
}

static bool send_line(int dealer, const Text &line) {
    Text text = line + "\r\n";
    return write(dealer, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

int main(int count, char **arguments) {
    if (count != 4) return std::cerr << "acpc_bot POLICY HOST PORT\n", 2;
    Text program = arguments[0], reader = program.substr(0, program.rfind('/') + 1) + "look_up", text;
    int dealer = connected(arguments[2], arguments[3]);
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
