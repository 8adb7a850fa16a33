// The C interface between Python and a compiled Stan program; every exception ends here.
//
// All functions that return a Status write the text of a failure to `message`, at most `size` bytes with the final 0.
// Vectors are unconstrained states of `dim` numbers unless said otherwise; matrices are stored by row.
#include "chains.hpp"
#include "layout.hpp"
#include "overlay.hpp"
#include "random.hpp"

#include <stan/io/json/json_data.hpp>
#include <stan/model/gradient.hpp>

#include <chrono>
#include <cstring>
#include <memory>
#include <sstream>
#include <vector>

stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed, std::ostream* messages);

namespace bread {

Tempering tempering;

namespace {

// Mirrored in interface.py.
enum Status : std::int32_t { ok = 0, rejected = 1, failed = 2, bad_start = 3, interrupted = 4, unknown = 5 };

void copy_text(const std::string& text, char* message, std::int64_t size) {
  if (size <= 0) return;
  const std::size_t n = std::min(text.size(), static_cast<std::size_t>(size - 1));
  std::memcpy(message, text.data(), n);
  message[n] = '\0';
}

// The one place where C++ exceptions become a status and a text.
template <typename Work>
Status guarded(char* message, std::int64_t size, const Work& work) {
  Status status = Status::ok;
  std::string text;
  copy_text(text, message, size);
  try {
    tempering = Tempering();
    work();
  } catch (const BadStart& error) {
    status = Status::bad_start;
    text = error.what();
  } catch (const std::domain_error& error) {
    status = Status::rejected;
    text = error.what();
  } catch (const std::exception& error) {
    status = Status::failed;
    text = error.what();
  } catch (const Interrupted&) {
    status = Status::interrupted;
    text = "interrupted";
  } catch (...) {
    status = Status::unknown;
    text = "an exception of unknown type";
  }
  if (status != Status::ok) copy_text(text, message, size);
  return status;
}

std::string json_list(const std::vector<std::string>& items, const char* quote) {
  std::string text = "[";
  for (std::size_t i = 0; i < items.size(); ++i) text += (i ? "," : "") + (quote + items[i] + quote);
  return text + "]";
}

// {"<group>": {"names": [...], "dims": [[...], ...]}, ...} for parameters, transformed parameters and generated
// quantities together in three cumulative groups, and "coordinates": names of the unconstrained coordinates.
std::string describe(const stan::model::model_base& model) {
  std::string text = "{";
  const char* groups[] = {"parameters", "transformed", "generated"};
  for (int group = 0; group < 3; ++group) {
    std::vector<std::string> names;
    std::vector<std::vector<std::size_t>> dims;
    std::vector<std::string> shapes;
    model.get_param_names(names, group == 1, group == 2);
    model.get_dims(dims, group == 1, group == 2);
    for (const auto& shape : dims) {
      std::vector<std::string> sizes;
      for (const std::size_t extent : shape) sizes.push_back(std::to_string(extent));
      shapes.push_back(json_list(sizes, ""));
    }
    text += std::string("\"") + groups[group] + "\":{\"names\":" + json_list(names, "\"")
            + ",\"dims\":" + json_list(shapes, "") + "},";
  }
  std::vector<std::string> coordinates;
  model.unconstrained_param_names(coordinates, false, false);
  return text + "\"coordinates\":" + json_list(coordinates, "\"") + "}";
}

Eigen::VectorXd row_of(const double* matrix, std::int64_t row, std::int64_t dim) {
  return Map(matrix + row * dim, dim);
}

// Gives work the program with the outcomes of each row: data in JSON without the variables of `columns`.
template <typename Work>
void each_row(const Instance& instance, const char* json, std::int64_t n_columns, const bread_column* columns,
              std::int64_t n, const Work& work) {
  std::istringstream stream(json);
  const stan::json::json_data fixed(stream);
  Overlay data(fixed, columns, n_columns);
  std::ostringstream printed;
  for (std::int64_t row = 0; row < n; ++row) {
    data.set_row(row);
    const std::unique_ptr<stan::model::model_base> program(&new_model(data, 0U, &printed));
    if (static_cast<std::int64_t>(program->num_params_r()) != instance.dim()) {
      throw std::logic_error("the number of parameters changes with the outcomes");
    }
    work(*program, row);
    printed.str("");
  }
}

template <typename WithNuts, typename WithHmc>
void dispatch(const bread_kernel& kernel, const WithNuts& with_nuts, const WithHmc& with_hmc) {
  if (kernel.name == 0) {
    with_nuts();
  } else {
    with_hmc();
  }
}

using Nuts = NutsKernel<DiagonalNuts>;
using Hmc = HmcKernel<DiagonalStaticHmc>;
using AdaptiveNuts = NutsKernel<stan::mcmc::adapt_diag_e_nuts>;
using AdaptiveHmc = HmcKernel<stan::mcmc::adapt_diag_e_static_hmc>;

}  // namespace
}  // namespace bread

using bread::Instance;
using bread::TemperedModel;

#define BREAD_API extern "C" __attribute__((visibility("default")))

// Reads data and runs transformed data with random numbers from `seed`.
BREAD_API std::int32_t bread_new(const char* json, std::uint32_t seed, Instance** result, char* message,
                                 std::int64_t size) {
  return bread::guarded(message, size, [&] {
    std::istringstream stream(json);
    stan::json::json_data data(stream);
    auto instance = std::make_unique<Instance>();
    std::ostringstream printed;
    instance->model.reset(&new_model(data, seed, &printed));
    instance->description = bread::describe(*instance->model);
    *result = instance.release();
  });
}

// The layout of the structures below, as JSON.
BREAD_API const char* bread_layout() {
  static const std::string text = bread::layout();
  return text.c_str();
}

BREAD_API void bread_delete(Instance* instance) { delete instance; }

BREAD_API const char* bread_describe(const Instance* instance) { return instance->description.c_str(); }

// Log density at the path's start (prior or reference) and log ratio of its ends at n states, (n, 2). At a rejected
// state the prior and every ratio are -inf; another exception leaves NaN, and the first of them is the message.
BREAD_API std::int32_t bread_evaluate(const Instance* instance, const bread::bread_path* path, std::int64_t n,
                                      const double* states, double* terms, char* message, std::int64_t size) {
  return bread::guarded(message, size, [&] {
    bread::forget_history();
    std::string reason;
    const TemperedModel model(*instance->model, *path, nullptr);
    for (std::int64_t row = 0; row < n; ++row) {
      bread::Terms result{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
      try {
        result = model.evaluate(bread::row_of(states, row, instance->dim()), reason.empty() ? &reason : nullptr);
      } catch (const std::exception& error) {
        if (reason.empty()) reason = error.what();
      }
      terms[2 * row] = result.log_start;
      terms[2 * row + 1] = result.log_ratio;
    }
    bread::copy_text(reason, message, size);
  });
}

// n pairs of data and state: data in JSON without the variables of `columns`, which hold those of each pair. Log base
// and log ratio (n, 2), as bread_evaluate has them; or, where gradients (n, dim) are wanted, the log density at beta and
// the log ratio, with -inf and NaN in the gradient where bread_gradient would fail. Data that the program refuses end
// the call.
BREAD_API std::int32_t bread_rows(const Instance* instance, const char* json, const bread::bread_path* path,
                                  std::int64_t n_columns, const bread::bread_column* columns, std::int64_t n,
                                  const double* states, double beta, double* terms, double* gradients,
                                  char* message, std::int64_t size) {
  return bread::guarded(message, size, [&] {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const std::int64_t dim = instance->dim();
    stan::callbacks::logger logger;
    bread::each_row(*instance, json, n_columns, columns, n, [&](const auto& program, std::int64_t row) {
      bread::forget_history();
      const TemperedModel model(program, *path, nullptr);
      const Eigen::VectorXd q = bread::row_of(states, row, dim);
      double* found = terms + 2 * row;
      try {
        if (gradients) {
          Eigen::VectorXd gradient;
          model.set_beta(beta);
          stan::model::gradient(model, q, found[0], gradient, logger);
          found[1] = model.last_log_ratio();
          std::copy_n(gradient.data(), dim, gradients + row * dim);
        } else {
          const bread::Terms result = model.evaluate(q);
          found[0] = result.log_start;
          found[1] = result.log_ratio;
        }
      } catch (const std::exception&) {
        found[0] = gradients ? -infinity : nan;
        found[1] = nan;
        if (gradients) std::fill_n(gradients + row * dim, dim, nan);
      }
    });
  });
}

// n chains of the frozen kernel, each with data of its own as in bread_rows: `states` (n, dim) are replaced by those
// after n_steps; seeds (n, 4); counts (2): gradients and evaluations of all.
BREAD_API std::int32_t bread_move_rows(const Instance* instance, bread::bread_control* control, const char* json,
                                       const bread::bread_path* path, std::int64_t n_columns,
                                       const bread::bread_column* columns, const bread::bread_kernel* kernel,
                                       double beta, double step_size, const double* inverse_metric, std::int64_t n,
                                       std::int64_t n_steps, const std::uint32_t* seeds, double* states,
                                       std::int64_t* counts, char* message, std::int64_t size) {
  return bread::guarded(message, size, [&] {
    const std::int64_t dim = instance->dim();
    const Eigen::VectorXd metric = bread::row_of(inverse_metric, 0, dim);
    bread::each_row(*instance, json, n_columns, columns, n, [&](const auto& program, std::int64_t row) {
      const TemperedModel model(program, *path, control);
      model.set_beta(beta);
      double* state = states + row * dim;
      const Eigen::VectorXd start = bread::row_of(state, 0, dim);
      const std::uint32_t* seed = seeds + 4 * row;
      bread::dispatch(
          *kernel,
          [&] {
            bread::evolve<bread::Nuts>(model, *kernel, seed, step_size, metric, start, nullptr, beta, 1, &n_steps,
                                       state);
          },
          [&] {
            bread::evolve<bread::Hmc>(model, *kernel, seed, step_size, metric, start, nullptr, beta, 1, &n_steps,
                                      state);
          });
      counts[0] += model.n_gradients;
      counts[1] += model.n_evaluations;
    });
  });
}

// Log prior at n states as a density of the parameters themselves: without the Jacobian of the map from states, and
// without a law that takes the place of a part of it. -inf at a rejected state, NaN after another exception.
BREAD_API std::int32_t bread_constrained_prior(const Instance* instance, std::int64_t n, const double* states,
                                               double* densities, char* message, std::int64_t size) {
  return bread::guarded(message, size, [&] {
    bread::forget_history();
    bread::tempering.beta = 0.0;
    for (std::int64_t row = 0; row < n; ++row) {
      Eigen::VectorXd q = bread::row_of(states, row, instance->dim());
      try {
        densities[row] = instance->model->template log_prob<false, false>(q, nullptr);
      } catch (const std::domain_error&) {
        densities[row] = -std::numeric_limits<double>::infinity();
      } catch (const std::exception&) {
        densities[row] = std::numeric_limits<double>::quiet_NaN();
      }
    }
  });
}

// The log density at beta, the log ratio (NaN where the program is not evaluated), and the gradient (dim) of the
// former.
BREAD_API std::int32_t bread_gradient(const Instance* instance, const bread::bread_path* path, double beta,
                                      const double* state, double* density, double* gradient, char* message,
                                      std::int64_t size) {
  return bread::guarded(message, size, [&] {
    bread::forget_history();
    const TemperedModel model(*instance->model, *path, nullptr);
    stan::callbacks::logger logger;
    Eigen::VectorXd result;
    model.set_beta(beta);
    stan::model::gradient(model, bread::row_of(state, 0, instance->dim()), density[0], result, logger);
    density[1] = model.last_log_ratio();
    std::copy_n(result.data(), result.size(), gradient);
  });
}

// Log density at beta and its gradient at each of n states; NaN where bread_gradient would fail.
BREAD_API std::int32_t bread_gradients(const Instance* instance, const bread::bread_path* path, double beta,
                                       std::int64_t n, const double* states, double* densities, double* gradients,
                                       char* message, std::int64_t size) {
  return bread::guarded(message, size, [&] {
    bread::forget_history();
    const TemperedModel model(*instance->model, *path, nullptr);
    stan::callbacks::logger logger;
    const std::int64_t dim = instance->dim();
    Eigen::VectorXd result;
    model.set_beta(beta);
    for (std::int64_t row = 0; row < n; ++row) {
      try {
        stan::model::gradient(model, bread::row_of(states, row, dim), densities[row], result, logger);
        std::copy_n(result.data(), dim, gradients + row * dim);
      } catch (const std::exception&) {
        densities[row] = std::numeric_limits<double>::quiet_NaN();
        std::fill_n(gradients + row * dim, dim, densities[row]);
      }
    }
  });
}

// Seconds of `repeats` gradients at each of n states, one state after the other: what the cost of a chain is compared
// with. At a single state they would cost less than in any chain, as the processor learns the branches.
BREAD_API std::int32_t bread_time_gradient(const Instance* instance, const bread::bread_path* path, double beta,
                                           std::int64_t n, const double* states, std::int64_t repeats, double* seconds,
                                           char* message, std::int64_t size) {
  return bread::guarded(message, size, [&] {
    bread::forget_history();
    const TemperedModel model(*instance->model, *path, nullptr);
    stan::callbacks::logger logger;
    std::vector<Eigen::VectorXd> rows;
    for (std::int64_t row = 0; row < n; ++row) rows.push_back(bread::row_of(states, row, instance->dim()));
    Eigen::VectorXd result;
    double density = 0.0;
    model.set_beta(beta);
    const auto began = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < repeats; ++i) {
      for (const Eigen::VectorXd& q : rows) stan::model::gradient(model, q, density, result, logger);
    }
    *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  });
}

// Constrained values of n states: parameters, then transformed parameters and generated quantities if asked for, each
// by column; (n, n_values). `seeds` (n, 4) are the random numbers of the generated quantities.
BREAD_API std::int32_t bread_constrain(const Instance* instance, std::int64_t n, const double* states,
                                       const std::uint32_t* seeds, std::int32_t with_transformed,
                                       std::int32_t with_generated, std::int64_t n_values, double* values,
                                       char* message, std::int64_t size) {
  return bread::guarded(message, size, [&] {
    bread::forget_history();
    std::ostringstream printed;
    auto rng = stan::services::util::create_rng(0U, 1U);  // in the signature, and not used without generated quantities
    for (std::int64_t row = 0; row < n; ++row) {
      Eigen::VectorXd q = bread::row_of(states, row, instance->dim());
      Eigen::VectorXd result;
      if (with_generated != 0) rng = bread::make_model_rng<bread::ModelRng>(seeds + 4 * row);
      instance->model->write_array(rng, q, result, with_transformed != 0, with_generated != 0, &printed);
      if (result.size() != n_values) throw std::logic_error("the number of values differs from the program's");
      std::copy_n(result.data(), result.size(), values + row * n_values);
      printed.str("");
    }
  });
}

// Unconstrained states (n, dim) of constrained parameters (n, n_values), each by column.
BREAD_API std::int32_t bread_unconstrain(const Instance* instance, std::int64_t n, std::int64_t n_values,
                                         const double* values, double* states, char* message, std::int64_t size) {
  return bread::guarded(message, size, [&] {
    for (std::int64_t row = 0; row < n; ++row) {
      Eigen::VectorXd result;
      std::ostringstream printed;
      instance->model->unconstrain_array(bread::row_of(values, row, n_values), result, &printed);
      std::copy_n(result.data(), result.size(), states + row * instance->dim());
    }
  });
}

// Annealed chains. The message is that of the first chain that failed; failures are in the counts.
BREAD_API std::int32_t bread_anneal(const Instance* instance, bread::bread_control* control,
                                    const bread::bread_path* path,
                                    const bread::bread_kernel* kernel,
                                    const bread::bread_schedule* schedule, const bread::bread_chains* chains,
                                    char* message, std::int64_t size) {
  return bread::guarded(message, size, [&] {
    std::string reason;
    const auto& model = *instance->model;
    bread::dispatch(
        *kernel, [&] { bread::anneal<bread::Nuts>(model, *path, control, *kernel, *schedule, *chains, reason); },
        [&] { bread::anneal<bread::Hmc>(model, *path, control, *kernel, *schedule, *chains, reason); });
    bread::copy_text(reason, message, size);
  });
}

// A chain of the frozen kernel, with proposals from the start of the path or null; states (n_keep, dim); counts (2): gradients, evaluations.
BREAD_API std::int32_t bread_evolve(const Instance* instance, bread::bread_control* control,
                                    const bread::bread_path* path,
                                    const bread::bread_kernel* kernel, double beta,
                                    double step_size, const double* inverse_metric, const double* start,
                                    const bread::bread_proposals* proposals, const std::uint32_t* seed,
                                    std::int64_t n_keep, const std::int64_t* keep,
                                    double* states, std::int64_t* counts, char* message, std::int64_t size) {
  return bread::guarded(message, size, [&] {
    const TemperedModel model(*instance->model, *path, control);
    const Eigen::VectorXd metric = bread::row_of(inverse_metric, 0, instance->dim());
    const Eigen::VectorXd q = bread::row_of(start, 0, instance->dim());
    model.set_beta(beta);
    bread::dispatch(
        *kernel,
        [&] {
          bread::evolve<bread::Nuts>(model, *kernel, seed, step_size, metric, q, proposals, beta, n_keep, keep, states);
        },
        [&] {
          bread::evolve<bread::Hmc>(model, *kernel, seed, step_size, metric, q, proposals, beta, n_keep, keep, states);
        });
    counts[0] = model.n_gradients;
    counts[1] = model.n_evaluations;
  });
}

// Stan's adaptation. step_size (1), inverse_metric (dim) and state (dim) are read and replaced; log_ratio (n_steps);
// windows (3): Stan's init_buffer, term_buffer, base window; counts (2): gradients, evaluations.
BREAD_API std::int32_t bread_adapt(const Instance* instance, bread::bread_control* control,
                                   const bread::bread_path* path,
                                   const bread::bread_kernel* kernel, double beta,
                                   std::int64_t n_steps, const std::int64_t* windows, double target_acceptance,
                                   double* step_size, double* inverse_metric, double* state,
                                   const std::uint32_t* seed, double* log_ratio, std::int64_t* counts, char* message,
                                   std::int64_t size) {
  return bread::guarded(message, size, [&] {
    const TemperedModel model(*instance->model, *path, control);
    Eigen::VectorXd metric = bread::row_of(inverse_metric, 0, instance->dim());
    Eigen::VectorXd q = bread::row_of(state, 0, instance->dim());
    model.set_beta(beta);
    bread::dispatch(
        *kernel,
        [&] {
          bread::adapt<bread::AdaptiveNuts>(model, *kernel, seed, n_steps, windows, target_acceptance, *step_size,
                                            metric, q, log_ratio);
        },
        [&] {
          bread::adapt<bread::AdaptiveHmc>(model, *kernel, seed, n_steps, windows, target_acceptance, *step_size,
                                           metric, q, log_ratio);
        });
    std::copy_n(metric.data(), metric.size(), inverse_metric);
    std::copy_n(q.data(), q.size(), state);
    counts[0] = model.n_gradients;
    counts[1] = model.n_evaluations;
  });
}
