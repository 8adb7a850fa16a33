// Data of a program of which some variables are replaced by others of the same shape.
#ifndef BREAD_OVERLAY_HPP
#define BREAD_OVERLAY_HPP

#include <stan/io/var_context.hpp>

#include <complex>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace bread {

extern "C" {
// Mirrored in structures.py. A variable of the data block; the values of row i begin at i * size, each by column.
struct bread_column {
  const char* name;
  const double* values;  // (n_rows, size)
  const std::int64_t* shape;
  std::int64_t rank;
  std::int64_t size;
  std::int32_t is_int;
  std::int32_t unused;
};
}

class Overlay : public stan::io::var_context {
 public:
  Overlay(const stan::io::var_context& base, const bread_column* columns, std::int64_t n_columns)
      : base_(base), columns_(columns), n_columns_(n_columns) {}

  void set_row(std::int64_t row) { row_ = row; }

  bool contains_r(const std::string& name) const override { return find(name) || base_.contains_r(name); }

  bool contains_i(const std::string& name) const override {
    const bread_column* column = find(name);
    return column ? column->is_int != 0 : base_.contains_i(name);
  }

  std::vector<double> vals_r(const std::string& name) const override {
    const bread_column* column = find(name);
    if (!column) return base_.vals_r(name);
    return std::vector<double>(begin(*column), begin(*column) + column->size);
  }

  std::vector<std::complex<double>> vals_c(const std::string& name) const override { return base_.vals_c(name); }

  std::vector<int> vals_i(const std::string& name) const override {
    const bread_column* column = find(name);
    if (!column) return base_.vals_i(name);
    std::vector<int> values;
    for (std::int64_t i = 0; column->is_int && i < column->size; ++i) {
      values.push_back(static_cast<int>(begin(*column)[i]));
    }
    return values;
  }

  std::vector<size_t> dims_r(const std::string& name) const override {
    const bread_column* column = find(name);
    return column ? std::vector<size_t>(column->shape, column->shape + column->rank) : base_.dims_r(name);
  }

  std::vector<size_t> dims_i(const std::string& name) const override {
    const bread_column* column = find(name);
    if (!column) return base_.dims_i(name);
    return column->is_int ? dims_r(name) : std::vector<size_t>();
  }

  void names_r(std::vector<std::string>& names) const override { base_.names_r(names); }
  void names_i(std::vector<std::string>& names) const override { base_.names_i(names); }

  void validate_dims(const std::string& stage, const std::string& name, const std::string& base_type,
                     const std::vector<size_t>& declared) const override {
    const bread_column* column = find(name);
    if (!column) return base_.validate_dims(stage, name, base_type, declared);
    if (dims_r(name) != declared || (base_type == "int" && !column->is_int)) {
      throw std::runtime_error("the observed variable " + name + " has another shape or type than the program's");
    }
  }

 private:
  const bread_column* find(const std::string& name) const {
    for (std::int64_t i = 0; i < n_columns_; ++i) {
      if (name == columns_[i].name) return columns_ + i;
    }
    return nullptr;
  }

  const double* begin(const bread_column& column) const { return column.values + row_ * column.size; }

  const stan::io::var_context& base_;
  const bread_column* columns_;
  const std::int64_t n_columns_;
  std::int64_t row_ = 0;
};

}  // namespace bread

#endif
