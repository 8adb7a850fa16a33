// The memory layout of every structure that Python mirrors, as JSON: {"<name>": [size, {"<field>": offset, ...}], ...}.
// structures.py compares it with its own when a library is loaded.
#ifndef BREAD_LAYOUT_HPP
#define BREAD_LAYOUT_HPP

#include "chains.hpp"
#include "overlay.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace bread {

inline std::string layout() {
  std::string text;
  const auto add = [&](const char* name, std::size_t size,
                       const std::vector<std::pair<const char*, std::size_t>>& fields) {
    std::string offsets;
    for (const auto& field : fields) {
      offsets += (offsets.empty() ? "\"" : ",\"") + std::string(field.first) + "\":" + std::to_string(field.second);
    }
    text += (text.empty() ? "\"" : ",\"") + std::string(name) + "\":[" + std::to_string(size) + ",{" + offsets + "}]";
  };
#define BREAD_AT(field) {#field, offsetof(bread_control, field)}
  add("bread_control", sizeof(bread_control),
      {BREAD_AT(stop), BREAD_AT(unused), BREAD_AT(done)});
#undef BREAD_AT
#define BREAD_AT(field) {#field, offsetof(bread_kernel, field)}
  add("bread_kernel", sizeof(bread_kernel),
      {BREAD_AT(name), BREAD_AT(max_tree_depth), BREAD_AT(max_leapfrogs), BREAD_AT(unused),
       BREAD_AT(integration_time), BREAD_AT(step_size_jitter)});
#undef BREAD_AT
#define BREAD_AT(field) {#field, offsetof(bread_schedule, field)}
  add("bread_schedule", sizeof(bread_schedule),
      {BREAD_AT(n_temperatures), BREAD_AT(betas), BREAD_AT(step_sizes), BREAD_AT(inverse_metrics),
       BREAD_AT(is_reverse), BREAD_AT(every)});
#undef BREAD_AT
#define BREAD_AT(field) {#field, offsetof(bread_chains, field)}
  add("bread_chains", sizeof(bread_chains),
      {BREAD_AT(n_chains), BREAD_AT(start), BREAD_AT(seeds), BREAD_AT(log_ratio), BREAD_AT(state_at_start),
       BREAD_AT(state_at_end), BREAD_AT(log_start), BREAD_AT(counts), BREAD_AT(proposals)});
#undef BREAD_AT
#define BREAD_AT(field) {#field, offsetof(bread_column, field)}
  add("bread_column", sizeof(bread_column),
      {BREAD_AT(name), BREAD_AT(values), BREAD_AT(shape), BREAD_AT(rank), BREAD_AT(size), BREAD_AT(is_int),
       BREAD_AT(unused)});
#undef BREAD_AT
#define BREAD_AT(field) {#field, offsetof(bread_proposals, field)}
  add("bread_proposals", sizeof(bread_proposals), {BREAD_AT(states), BREAD_AT(log_ratio), BREAD_AT(log_uniform)});
#undef BREAD_AT
#define BREAD_AT(field) {#field, offsetof(bread_component, field)}
  add("bread_component", sizeof(bread_component),
      {BREAD_AT(mean), BREAD_AT(scale), BREAD_AT(matrix), BREAD_AT(directions), BREAD_AT(stretch),
       BREAD_AT(degrees), BREAD_AT(rank), BREAD_AT(log_factor)});
#undef BREAD_AT
#define BREAD_AT(field) {#field, offsetof(bread_nested, field)}
  add("bread_nested", sizeof(bread_nested),
      {BREAD_AT(driver), BREAD_AT(n_components), BREAD_AT(components), BREAD_AT(centre), BREAD_AT(matrix),
       BREAD_AT(n_knots), BREAD_AT(knots), BREAD_AT(origins), BREAD_AT(widths), BREAD_AT(coefficients),
       BREAD_AT(log_factor)});
#undef BREAD_AT
#define BREAD_AT(field) {#field, offsetof(bread_gauge, field)}
  add("bread_gauge", sizeof(bread_gauge),
      {BREAD_AT(n_rows), BREAD_AT(n_columns), BREAD_AT(places), BREAD_AT(others), BREAD_AT(frame),
       BREAD_AT(log_volume)});
#undef BREAD_AT
#define BREAD_AT(field) {#field, offsetof(bread_powers, field)}
  add("bread_powers", sizeof(bread_powers), {BREAD_AT(n), BREAD_AT(exponents), BREAD_AT(values)});
#undef BREAD_AT
#define BREAD_AT(field) {#field, offsetof(bread_factors, field)}
  add("bread_factors", sizeof(bread_factors),
      {BREAD_AT(n_rows), BREAD_AT(n_inner), BREAD_AT(n_outer), BREAD_AT(n_rest), BREAD_AT(inner), BREAD_AT(outer),
       BREAD_AT(rest), BREAD_AT(drivers), BREAD_AT(units), BREAD_AT(own), BREAD_AT(curvature), BREAD_AT(slopes)});
#undef BREAD_AT
#define BREAD_AT(field) {#field, offsetof(bread_density, field)}
  add("bread_density", sizeof(bread_density),
      {BREAD_AT(n_components), BREAD_AT(components), BREAD_AT(n), BREAD_AT(coordinates),
       BREAD_AT(jacobians), BREAD_AT(nested), BREAD_AT(gauge), BREAD_AT(factors), BREAD_AT(callback)});
#undef BREAD_AT
#define BREAD_AT(field) {#field, offsetof(bread_path, field)}
  add("bread_path", sizeof(bread_path),
      {BREAD_AT(reference), BREAD_AT(law), BREAD_AT(given)});
#undef BREAD_AT
  return "{" + text + "}";
}

}  // namespace bread

#endif
