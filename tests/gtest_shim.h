// SPDX-License-Identifier: Apache-2.0
/* GoogleTest for tests written in C.
 *
 *   MUSTER_TEST(session, opens) {
 *     g_autoptr(GError) error = NULL;
 *     MUSTER_ASSERT_NO_ERROR(error);
 *     MUSTER_EXPECT_EQ(2, 1 + 1);
 *   }
 *
 * Each MUSTER_TEST becomes a GoogleTest test: --gtest_filter, sharding, repeat,
 * shuffle and the XML report apply to it. EXPECT goes on after a failure,
 * ASSERT returns from the function it stands in (g_auto* clean-ups run).
 * A GLib critical or warning that no MUSTER_EXPECT_LOG asked for ends the
 * process, and so fails the test; a warning in muster's log doesn't, which
 * says what an operator must know (tests/doubles/heard.h).
 */
#ifndef MUSTER_TESTS_GTEST_SHIM_H
#define MUSTER_TESTS_GTEST_SHIM_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

G_BEGIN_DECLS

typedef void (*MusterTestFunc) (void);
typedef void (*MusterTestDataFunc) (gpointer data);

typedef struct _MusterTestCase MusterTestCase;
struct _MusterTestCase {
  const char *suite;
  const char *name;
  const char *file;
  int line;
  MusterTestFunc func;
  MusterTestCase *next;
};

/* Called before main(): only links the case into a list, allocates nothing. */
void muster_test_add (MusterTestCase *test);

/* Each returns whether the expectation held; when not, it has recorded a
 * failure of the running test at file:line. Safe from any thread. */
bool muster_test_true (const char *file, int line, const char *text, bool wanted, bool value);
bool muster_test_int (const char *file, int line, const char *op, const char *a_text,
                      const char *b_text, gint64 a, gint64 b);
bool muster_test_uint (const char *file, int line, const char *op, const char *a_text,
                       const char *b_text, guint64 a, guint64 b);
bool muster_test_double (const char *file, int line, const char *op, const char *a_text,
                         const char *b_text, double a, double b);
bool muster_test_near (const char *file, int line, const char *a_text, const char *b_text, double a,
                       double b, double tolerance);
bool muster_test_pointer (const char *file, int line, const char *op, const char *a_text,
                          const char *b_text, const void *a, const void *b);
bool muster_test_string (const char *file, int line, const char *a_text, const char *b_text,
                         const char *a, const char *b);
bool muster_test_memory (const char *file, int line, const char *a_text, const char *b_text,
                         const void *a, size_t a_size, const void *b, size_t b_size);
bool muster_test_no_error (const char *file, int line, const char *text, const GError *error);
bool muster_test_error (const char *file, int line, const char *text, const GError *error,
                        GQuark domain, int code);
bool muster_test_says (const char *file, int line, const char *text, const GError *error,
                       GQuark domain, int code, const char *words);
bool muster_test_death (const char *file, int line, const char *text, MusterTestDataFunc func,
                        gpointer data, const char *output_regex);
void muster_test_fail (const char *file, int line, const char *format, ...) G_GNUC_PRINTF (3, 4);
void muster_test_skip (const char *file, int line, const char *format, ...) G_GNUC_PRINTF (3, 4);
/* Adds "note: ..." to failures recorded until the next trace or the end of the test. */
void muster_test_trace (const char *file, int line, const char *format, ...) G_GNUC_PRINTF (3, 4);
bool muster_test_has_failed (void);
/* A fresh folder, removed after the test; owned by the shim. */
const char *muster_test_tmpdir (void);

#define MUSTER_TEST(suite_, name_)                                                                 \
  static void muster_test_##suite_##_##name_ (void);                                               \
  static MusterTestCase muster_case_##suite_##_##name_ = {                                         \
      #suite_, #name_, __FILE__, __LINE__, muster_test_##suite_##_##name_, NULL};                  \
  __attribute__ ((constructor)) static void muster_register_##suite_##_##name_ (void)              \
  {                                                                                                \
    muster_test_add (&muster_case_##suite_##_##name_);                                             \
  }                                                                                                \
  static void muster_test_##suite_##_##name_ (void)

#ifndef __cplusplus
/* clang-format off */
#define MUSTER_COMPARE_(op, a, b)                                                      \
  _Generic((a) + 0,                                                                    \
      unsigned long: muster_test_uint,                                                 \
      unsigned long long: muster_test_uint,                                            \
      float: muster_test_double,                                                       \
      double: muster_test_double,                                                      \
      default: muster_test_int)(__FILE__, __LINE__, op, #a, #b, (a), (b))
/* clang-format on */
#endif

#define MUSTER_EXPECT_TRUE(x)  ((void)muster_test_true (__FILE__, __LINE__, #x, true, !!(x)))
#define MUSTER_EXPECT_FALSE(x) ((void)muster_test_true (__FILE__, __LINE__, #x, false, !!(x)))
#define MUSTER_EXPECT_EQ(a, b) ((void)MUSTER_COMPARE_ ("==", a, b))
#define MUSTER_EXPECT_NE(a, b) ((void)MUSTER_COMPARE_ ("!=", a, b))
#define MUSTER_EXPECT_LT(a, b) ((void)MUSTER_COMPARE_ ("<", a, b))
#define MUSTER_EXPECT_LE(a, b) ((void)MUSTER_COMPARE_ ("<=", a, b))
#define MUSTER_EXPECT_GT(a, b) ((void)MUSTER_COMPARE_ (">", a, b))
#define MUSTER_EXPECT_GE(a, b) ((void)MUSTER_COMPARE_ (">=", a, b))
#define MUSTER_EXPECT_NEAR(a, b, t)                                                                \
  ((void)muster_test_near (__FILE__, __LINE__, #a, #b, (a), (b), (t)))
#define MUSTER_EXPECT_STREQ(a, b) ((void)muster_test_string (__FILE__, __LINE__, #a, #b, (a), (b)))
#define MUSTER_EXPECT_MEMEQ(a, an, b, bn)                                                          \
  ((void)muster_test_memory (__FILE__, __LINE__, #a, #b, (a), (an), (b), (bn)))
#define MUSTER_EXPECT_NULL(p)                                                                      \
  ((void)muster_test_pointer (__FILE__, __LINE__, "==", #p, "NULL", (p), NULL))
#define MUSTER_EXPECT_PTR_EQ(a, b)                                                                 \
  ((void)muster_test_pointer (__FILE__, __LINE__, "==", #a, #b, (a), (b)))
#define MUSTER_EXPECT_NO_ERROR(e) ((void)muster_test_no_error (__FILE__, __LINE__, #e, (e)))
#define MUSTER_EXPECT_ERROR(e, domain, code)                                                       \
  ((void)muster_test_error (__FILE__, __LINE__, #e, (e), (domain), (code)))
/* The error's message contains words. */
#define MUSTER_EXPECT_SAYS(e, domain, code, words)                                                 \
  ((void)muster_test_says (__FILE__, __LINE__, #e, (e), (domain), (code), (words)))
/* func(data) is run in a child process, which must die printing output_regex. */
#define MUSTER_EXPECT_DEATH(func, data, output_regex)                                              \
  ((void)muster_test_death (__FILE__, __LINE__, #func, (func), (data), (output_regex)))

#define MUSTER_ASSERT_(held)                                                                       \
  do {                                                                                             \
    if (!(held))                                                                                   \
      return;                                                                                      \
  } while (0)
#define MUSTER_ASSERT_TRUE(x)                                                                      \
  MUSTER_ASSERT_ (muster_test_true (__FILE__, __LINE__, #x, true, !!(x)))
#define MUSTER_ASSERT_FALSE(x)                                                                     \
  MUSTER_ASSERT_ (muster_test_true (__FILE__, __LINE__, #x, false, !!(x)))
#define MUSTER_ASSERT_EQ(a, b) MUSTER_ASSERT_ (MUSTER_COMPARE_ ("==", a, b))
#define MUSTER_ASSERT_NOT_NULL(p)                                                                  \
  MUSTER_ASSERT_ (muster_test_pointer (__FILE__, __LINE__, "!=", #p, "NULL", (p), NULL))
#define MUSTER_ASSERT_NO_ERROR(e)                                                                  \
  MUSTER_ASSERT_ (muster_test_no_error (__FILE__, __LINE__, #e, (e)))

#define MUSTER_FAIL(...)  muster_test_fail (__FILE__, __LINE__, __VA_ARGS__)
#define MUSTER_TRACE(...) muster_test_trace (__FILE__, __LINE__, __VA_ARGS__)
#define MUSTER_SKIP(...)                                                                           \
  do {                                                                                             \
    muster_test_skip (__FILE__, __LINE__, __VA_ARGS__);                                            \
    return;                                                                                        \
  } while (0)

/* The next message logged by domain at level must match pattern (g_pattern_match);
 * MUSTER_ASSERT_LOGGED() then checks that it came. The code that logs must use
 * g_log (G_LOG_USE_STRUCTURED undefined), or g_test_expect_message cannot see it. */
#define MUSTER_EXPECT_LOG(domain, level, pattern)                                                  \
  g_test_expect_message ((domain), (level), (pattern))
#define MUSTER_ASSERT_LOGGED() g_test_assert_expected_messages ()

G_END_DECLS

#endif
