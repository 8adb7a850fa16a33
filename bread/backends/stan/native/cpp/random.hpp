// Random numbers of generated quantities: a generator for each row.
#ifndef BREAD_RANDOM_HPP
#define BREAD_RANDOM_HPP

#include "kernels.hpp"

#include <stan/services/util/create_rng.hpp>

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <type_traits>

namespace bread {

using ModelRng = decltype(stan::services::util::create_rng(0U, 0U));

// The last step of splitmix64: every bit of the argument changes half of the bits of the result.
inline std::uint64_t scrambled(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// A generator in a state that is made of a seed of 128 bits. Boost's own seeding skips ahead once for every bit that is
// set, which takes 0.1 ms: many times what a row of generated quantities takes. That two of so many random states (1037
// bits) lie near each other in the generator's sequence need not be thought of.
inline Rng quick_rng(const std::uint32_t* words) {
  constexpr std::uint64_t modulus = (1ULL << 61) - 1, step = 0x9e3779b97f4a7c15ULL;
  std::uint64_t first = words[0] | static_cast<std::uint64_t>(words[1]) << 32;
  std::uint64_t second = words[2] | static_cast<std::uint64_t>(words[3]) << 32;
  std::uint64_t state[Rng::N], sum = 0;
  for (auto& value : state) {
    value = (scrambled(first += step) ^ scrambled(scrambled(second += step))) & modulus;
    sum += value;
    sum = (sum & modulus) + (sum >> 61);
  }
  std::stringstream text;  // the only way in
  text << Rng::N << " 1 " << sum;
  for (const auto value : state) text << ' ' << value;
  Rng rng(0, 0, 0, 1);
  text >> rng;
  if (text.fail()) throw std::logic_error("the state of a random number generator was refused");
  return rng;
}

// For Stan before 2.35, which has another generator, a seed of 32 bits.
template <typename T>
T make_model_rng(const std::uint32_t* words) {
  if constexpr (std::is_same<T, Rng>::value) {
    return quick_rng(words);
  } else {
    return stan::services::util::create_rng(words[0], 0U);
  }
}

}  // namespace bread

#endif
