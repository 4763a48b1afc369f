// The peer that a C++ programmer would write in ten minutes: compressed rows and a breadth-first search.
// Usage: plain_bfs FILE. FILE holds uint64 n, uint64 m, uint32 sources[m], uint32 targets[m].
// Commands on stdin, one answer a line: "one" and "both" build one or both directions and print the seconds;
// "reach t k r1 .. rk" does it t times and prints the seconds, the number of nodes reached, the sum of their ids.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

using Ids = std::vector<std::uint32_t>;
struct Rows { Ids offsets, heads; };

static Rows build(std::size_t n, const Ids& from, const Ids& to) {
    Rows rows{Ids(n + 1), Ids(from.size())};
    for (auto u : from) ++rows.offsets[u + 1];
    for (std::size_t i = 0; i < n; ++i) rows.offsets[i + 1] += rows.offsets[i];
    Ids next(rows.offsets.begin(), rows.offsets.end() - 1);
    for (std::size_t e = 0; e < from.size(); ++e) rows.heads[next[from[e]]++] = to[e];
    return rows;
}

static Ids reach(const Rows& rows, const Ids& roots) {
    std::vector<std::uint64_t> seen((rows.offsets.size() + 62) / 64);
    Ids queue;
    auto visit = [&](std::uint32_t v) {
        if (!(seen[v >> 6] >> (v & 63) & 1)) { seen[v >> 6] |= 1ull << (v & 63); queue.push_back(v); }
    };
    for (auto r : roots) visit(r);
    for (std::size_t i = 0; i < queue.size(); ++i)
        for (auto e = rows.offsets[queue[i]], end = rows.offsets[queue[i] + 1]; e < end; ++e) visit(rows.heads[e]);
    return queue;
}

int main(int, char** argv) {
    std::FILE* file = std::fopen(argv[1], "rb");
    std::uint64_t size[2];
    if (!file || std::fread(size, 8, 2, file) != 2) return 1;
    Ids from(size[1]), to(size[1]);
    if (std::fread(from.data(), 4, size[1], file) != size[1] || std::fread(to.data(), 4, size[1], file) != size[1]) return 1;
    Rows rows = build(size[0], from, to);
    for (std::string command; std::cin >> command;) {
        Ids roots;
        std::size_t times = 1, count = 0;
        if (command == "reach") {
            std::cin >> times >> count;
            roots.resize(count);
            for (auto& r : roots) std::cin >> r;
        }
        const auto start = std::chrono::steady_clock::now();
        Rows first, second;
        Ids reached;
        if (command == "reach") for (std::size_t t = 0; t < times; ++t) reached = reach(rows, roots);
        else first = build(size[0], from, to);
        if (command == "both") second = build(size[0], to, from);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        std::uint64_t sum = 0;
        for (auto v : reached) sum += v;
        std::printf("%.9f %zu %llu\n", took.count(), reached.size(), static_cast<unsigned long long>(sum));
        std::fflush(stdout);
    }
}
