// For Abseil before 2023: a value that is never destroyed.
#pragma once

#include <utility>

namespace absl {

template <class T>
class NoDestructor {
  public:
    template <class... Arguments>
    explicit NoDestructor(Arguments &&...arguments) : value_(new T(std::forward<Arguments>(arguments)...)) {}
    T *get() const { return value_; }

  private:
    T *value_;
};

}  // namespace absl
