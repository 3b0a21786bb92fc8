// Updates of one flat parameter vector, and the norm of a gradient.
#include "bindings/arrays.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>

namespace unspool {
namespace {

double global_norm(Vector g) {
  const int64_t n = (int64_t)g.shape(0), chunks = (n + CHUNK - 1) / CHUNK;
  Block squares = scratch_block(std::max<int64_t>(1, 2 * chunks));
  NormArgs a{n, g.data(), (double*)squares.at};
  {
    GilReleased released;
    parallel([&, body = kernels().norm](Team team) { body(a, team); }, at_most_threads((double)n));
  }
  double sum = 0.0;
  for (int64_t i = 0; i < chunks; i++) sum += a.squares[i];
  return std::sqrt(sum);
}

template <class A> void same_length(const WrittenVector& p, const A& other, const char* name) {
  require(p.shape(0) == other.shape(0), std::string(name) + " has " + std::to_string(other.shape(0)) + " values; the parameters have " +
                                            std::to_string(p.shape(0)));
}

const Optimiser& find_optimiser(const std::string& name) {
  const Kernels& k = kernels();
  std::string names;
  for (int i = 0; i < k.optimiser_count; i++) {
    if (name == k.optimisers[i].name) return k.optimisers[i];
    names += (i ? ", " : "") + std::string(k.optimisers[i].name);
  }
  throw Refused("optimiser is '" + name + "'; expected one of " + names);
}

// Settings are in the order of the table.
void update(const std::string& name, WrittenVector p, Vector g, std::vector<std::optional<WrittenVector>> states, double scale,
            const std::vector<double>& settings) {
  const Optimiser& optimiser = find_optimiser(name);
  same_length(p, g, "g");
  UpdateArgs a{};
  a.n = (int64_t)p.shape(0);
  a.p = p.data();
  a.g = g.data();
  a.scale = (float)scale;
  require((int)states.size() == optimiser.state_count, name + " has " + std::to_string(optimiser.state_count) + " states; got " + std::to_string(states.size()));
  for (int i = 0; i < optimiser.state_count; i++) {
    require(states[i] || i >= optimiser.required_states, name + " needs " + optimiser.states[i]);
    if (!states[i]) continue;
    same_length(p, *states[i], optimiser.states[i]);
    a.states[i] = states[i]->data();
  }
  require((int)settings.size() == optimiser.setting_count, name + " has " + std::to_string(optimiser.setting_count) + " settings; got " + std::to_string(settings.size()));
  std::copy(settings.begin(), settings.end(), a.settings);
  GilReleased released;
  parallel([&](Team team) { optimiser.update(a, team); }, at_most_threads((double)a.n * 8));
}

nb::list optimisers() {
  nb::list table;
  const Kernels& k = kernels();
  for (const Optimiser* optimiser = k.optimisers; optimiser < k.optimisers + k.optimiser_count; optimiser++) {
    nb::list states, settings;
    for (int i = 0; i < optimiser->state_count; i++) states.append(optimiser->states[i]);
    for (int i = 0; i < optimiser->setting_count; i++) settings.append(optimiser->settings[i]);
    nb::dict of;
    of["name"] = optimiser->name;
    of["states"] = states;
    of["required_states"] = optimiser->required_states;
    of["settings"] = settings;
    table.append(of);
  }
  return table;
}

}  // namespace

void bind_optimisers(nb::module_& m) {
  m.def("global_norm", &global_norm, "g"_a.noconvert());
  m.def("optimisers", &optimisers);
  m.def("update", &update, "optimiser"_a, "p"_a.noconvert(), "g"_a.noconvert(), "states"_a.noconvert(), "scale"_a, "settings"_a);
}

}  // namespace unspool
