// The path from an easy density to the posterior: bread.paths.kinds.
#ifndef BREAD_PATHS_HPP
#define BREAD_PATHS_HPP

#include "reference.hpp"

#include <stan/model/model_base.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace bread {

// A program with data, as Python holds it.
struct Instance {
  std::unique_ptr<stan::model::model_base> model;
  std::string description;
  std::int64_t dim() const { return static_cast<std::int64_t>(model->num_params_r()); }
};

extern "C" {
// Mirrored in structures.py.
struct bread_path {
  const bread_density* reference;  // where the path starts; null: from the prior
  const bread_density* law;        // multiplies the program's density, on every path; or null
  const void* given;               // an Instance, whose likelihood is a part of the prior, on every path; or null
};
}

struct Path {
  explicit Path(const bread_path& spec) {
    if (spec.reference) reference = std::make_unique<ReferenceDensity>(*spec.reference);
    if (spec.law) law = std::make_unique<ReferenceDensity>(*spec.law);
    if (spec.given) given = static_cast<const Instance*>(spec.given)->model.get();
  }

  std::unique_ptr<ReferenceDensity> reference;
  std::unique_ptr<ReferenceDensity> law;
  const stan::model::model_base* given = nullptr;
};

}  // namespace bread

#endif
