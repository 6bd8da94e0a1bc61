// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* Refuses NULL in a public function that has a GError: INVALID_ARGUMENT, which names the function
 * and the argument, before the function does anything else. Functions without a GError use
 * g_return_if_fail ().
 *
 *   muster_require (error, NULL, self, session, directory);
 *   muster_require_array (error, NULL, names, n_names); */

/* Returns value if one of the pointers is NULL. */
#define muster_require(error, value, ...)                                                          \
  do {                                                                                             \
    const void *const given_[] = {__VA_ARGS__};                                                    \
    for (gsize i_ = 0; i_ < G_N_ELEMENTS (given_); i_++)                                           \
      if (G_UNLIKELY (given_[i_] == NULL)) {                                                       \
        muster_refuse_null (error, G_STRFUNC, #__VA_ARGS__, i_);                                   \
        return value;                                                                              \
      }                                                                                            \
  } while (0)

/* Returns value if array is NULL and n is above 0. */
#define muster_require_array(error, value, array, n)                                               \
  do {                                                                                             \
    if (G_UNLIKELY ((array) == NULL && (n) > 0)) {                                                 \
      muster_refuse_null (error, G_STRFUNC, #array, 0);                                            \
      return value;                                                                                \
    }                                                                                              \
  } while (0)

/* Sets the error "function: 'name' is NULL". name is the i-th of names, which are separated by
 * commas. */
void muster_refuse_null (GError **error, const char *function, const char *names,
                         gsize i) G_GNUC_NO_INLINE;

/* Returns is_done, a result of a function that a program has implemented for the type `whose`. If
 * it has failed without an error, which is its mistake, sets INTERNAL, with its name. */
gboolean muster_require_error (GError **error, gboolean is_done, const char *whose,
                               const char *function);

G_END_DECLS
