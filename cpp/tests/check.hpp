// Purpose: all that the C++ tests need of a test framework.
// Contract: CHECK counts and reports; finish() gives the exit code. No dependency.
#pragma once

#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>

namespace check {

inline int failures = 0;
inline long checks = 0;

inline void record(bool passed, const char* text, const char* file, int line) {
    ++checks;
    if (!passed && ++failures <= 20) {
        std::fprintf(stderr, "%s:%d: failed: %s\n", file, line, text);
    }
}

inline int finish(const char* name) {
    std::printf("%s: %ld checks, %d failures\n", name, checks, failures);
    return failures == 0 && checks > 0 ? 0 : 1;
}

// Uniform in [first, last]; the standard distributions differ between libraries, this does not.
class Random {
public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
    std::int64_t between(std::int64_t first, std::int64_t last) {
        return first + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(last - first) + 1));
    }

private:
    std::mt19937_64 engine_;
};

}  // namespace check

#define CHECK(condition) ::check::record(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
#define CHECK_THROWS(expression, type)                                              \
    do {                                                                            \
        bool thrown_ = false;                                                       \
        try {                                                                       \
            (void)(expression);                                                     \
        } catch (const type&) {                                                     \
            thrown_ = true;                                                         \
        }                                                                           \
        ::check::record(thrown_, #expression " throws " #type, __FILE__, __LINE__); \
    } while (false)
