// The path from an easy density to the posterior: bread.paths.kinds.
#ifndef BREAD_PATHS_HPP
#define BREAD_PATHS_HPP

#include "reference.hpp"

#include <memory>

namespace bread {

extern "C" {
// Mirrored in structures.py.
struct bread_path {
  const bread_density* reference;  // where the path starts; null: from the prior
  const bread_density* law;        // multiplies the program's density, on every path; or null
};
}

struct Path {
  explicit Path(const bread_path& spec) {
    if (spec.reference) reference = std::make_unique<ReferenceDensity>(*spec.reference);
    if (spec.law) law = std::make_unique<ReferenceDensity>(*spec.law);
  }

  std::unique_ptr<ReferenceDensity> reference;
  std::unique_ptr<ReferenceDensity> law;
};

}  // namespace bread

#endif
