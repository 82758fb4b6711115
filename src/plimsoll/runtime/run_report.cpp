#include <algorithm>
#include <cmath>

#include "plimsoll/runtime/run.h"

namespace plimsoll::runtime {

double rms_error(const EncodedActivation& activation) {
  return activation.elements > 0
             ? std::sqrt(activation.squared_error / static_cast<double>(activation.elements))
             : 0;
}

std::vector<FormReport> by_form(const std::vector<EncodedActivation>& activations) {
  std::vector<FormReport> out;
  for (const EncodedActivation& activation : activations) {
    auto found = std::find_if(out.begin(), out.end(), [&](const FormReport& report) {
      return report.form == activation.form;
    });
    if (found == out.end()) {
      found = out.insert(out.end(), FormReport{});
      found->form = activation.form;
      found->lossless = activation.lossless;
    }
    found->activations.push_back(activation);
  }
  for (FormReport& report : out) {
    double elements = 0, squares = 0, values = 0;
    for (const EncodedActivation& activation : report.activations) {
      report.plain += activation.plain;
      report.planned += activation.planned;
      report.used += activation.used;
      report.overflow += activation.overflow;
      report.largest_error = std::max(report.largest_error, activation.largest_error);
      elements += static_cast<double>(activation.elements);
      squares += activation.squared_error;
      values += activation.squared_values;
    }
    report.rms_error = elements > 0 ? std::sqrt(squares / elements) : 0;
    report.relative_error = values > 0 ? std::sqrt(squares / values) : 0;
    std::stable_sort(report.activations.begin(), report.activations.end(),
                     [](const EncodedActivation& a, const EncodedActivation& b) {
                       return a.largest_error > b.largest_error;
                     });
  }
  return out;
}

double typical_seconds(const RunReport& report) {
  std::vector<double> seconds = report.step_seconds;
  if (seconds.size() > 1) seconds.erase(seconds.begin());
  if (seconds.empty()) return 0;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>((seconds.size() - 1) / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

}  // namespace plimsoll::runtime
