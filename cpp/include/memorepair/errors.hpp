// Purpose: every error the core throws on purpose.
// Contract: a message says the thing, what was expected and what came. An operation that throws has changed nothing.
#pragma once

#include <stdexcept>
#include <string>

namespace memorepair {

class Error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The sum of absolute weights exceeds 2^62.
class WeightOverflow : public Error {
    using Error::Error;
};

// A node id outside its graph or mask.
class NodeRange : public Error {
    using Error::Error;
};

// Edges, arrays or masks that do not describe one graph.
class InvalidGraph : public Error {
    using Error::Error;
};

// A cost, budget or cost weight below zero, or no number at all.
class InvalidAmount : public Error {
    using Error::Error;
};

// Bytes that are not a serialised mask, or a damaged one.
class InvalidMask : public Error {
    using Error::Error;
};

// A counter or id space is used up.
class Capacity : public Error {
    using Error::Error;
};

[[noreturn]] inline void throw_node_range(const char* what, unsigned long long id, unsigned long long size) {
    throw NodeRange(std::string(what) + ": expected an id below " + std::to_string(size) + ", got " +
                    std::to_string(id));
}

}  // namespace memorepair
