// The path from an easy density to the posterior: bread.paths.kinds.
#ifndef BREAD_PATHS_HPP
#define BREAD_PATHS_HPP

#include "reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

namespace bread {

extern "C" {
// Mirrored in path_arguments.py.
struct bread_path {
  std::int32_t kind;               // 0: from the prior; 1: from the prior, bounded; 2: from a reference
  std::int32_t unused;
  double offset;                   // bounded
  double power;                    // bounded
  const bread_density* reference;  // reference; else null
  const bread_density* law;        // multiplies the program's density, on every path; or null
};
}

class Path {
 public:
  explicit Path(const bread_path& spec)
      : is_bounded(spec.kind == 1), offset_(spec.offset), power_(spec.power) {
    if (spec.kind == 2) reference = std::make_unique<ReferenceDensity>(*spec.reference);
    if (spec.law) law = std::make_unique<ReferenceDensity>(*spec.law);
  }

  // log f_beta - log f_0 from the log ratio of the ends; 0 at beta = 0 even where the ratio is -inf.
  double temper(double beta, double log_ratio) const {
    if (beta == 0.0) return 0.0;
    if (!is_bounded || beta == 1.0 || std::isnan(log_ratio)) return beta * log_ratio;
    const double k = power_ / (1.0 - beta);
    return beta * (std::max(log_ratio, offset_) - k * std::log1p(gap(log_ratio) / k));
  }

  // Derivative of temper() by the log ratio.
  double slope(double beta, double log_ratio) const {
    return is_bounded ? beta / (1.0 + (1.0 - beta) / power_ * gap(log_ratio)) : beta;
  }

  const bool is_bounded;
  std::unique_ptr<ReferenceDensity> reference;
  std::unique_ptr<ReferenceDensity> law;

 private:
  double gap(double log_ratio) const { return std::max(offset_ - log_ratio, 0.0); }

  double offset_;
  double power_;
};

}  // namespace bread

#endif
