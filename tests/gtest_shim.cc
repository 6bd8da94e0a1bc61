// SPDX-License-Identifier: Apache-2.0
#include "tests/gtest_shim.h"

#include <glib-object.h>
#include <glib/gstdio.h>
#include <gtest/gtest.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace
{

MusterTestCase *first_case;
MusterTestCase **last_case = &first_case;

std::string tmpdir;
std::vector<std::unique_ptr<testing::ScopedTrace>> traces;

std::string
Format (const char *format, va_list args)
{
  g_autofree char *text = g_strdup_vprintf (format, args);
  return text;
}

class CTest : public testing::Test
{
public:
  explicit CTest (MusterTestFunc func) : func_ (func)
  {
  }
  void
  TestBody () override
  {
    func_ ();
  }
  void
  TearDown () override
  {
    traces.clear ();
    if (!tmpdir.empty ()) {
      std::error_code ignored;
      std::filesystem::remove_all (tmpdir, ignored);
      tmpdir.clear ();
    }
  }

private:
  MusterTestFunc func_;
};

template <typename T>
bool
Holds (const char *op, T a, T b)
{
  if (!strcmp (op, "=="))
    return a == b;
  if (!strcmp (op, "!="))
    return a != b;
  if (!strcmp (op, "<"))
    return a < b;
  if (!strcmp (op, "<="))
    return a <= b;
  if (!strcmp (op, ">"))
    return a > b;
  return a >= b;
}

template <typename T>
bool
Compare (const char *file, int line, const char *op, const char *a_text, const char *b_text, T a,
         T b)
{
  if (Holds (op, a, b))
    return true;
  ADD_FAILURE_AT (file, line) << "Expected: " << a_text << " " << op << " " << b_text << "\n  "
                              << a_text << " is " << testing::PrintToString (a) << "\n  " << b_text
                              << " is " << testing::PrintToString (b);
  return false;
}

std::string
Show (const GError *error)
{
  if (error == nullptr)
    return "no error";
  return std::string (g_quark_to_string (error->domain)) + " " + std::to_string (error->code) +
         ": " + error->message;
}

} // namespace

void
muster_test_add (MusterTestCase *test)
{
  *last_case = test;
  last_case = &test->next;
}

bool
muster_test_true (const char *file, int line, const char *text, bool wanted, bool value)
{
  if (wanted == value)
    return true;
  ADD_FAILURE_AT (file, line) << "Expected " << (wanted ? "true: " : "false: ") << text;
  return false;
}

bool
muster_test_int (const char *file, int line, const char *op, const char *a_text, const char *b_text,
                 gint64 a, gint64 b)
{
  return Compare (file, line, op, a_text, b_text, a, b);
}

bool
muster_test_uint (const char *file, int line, const char *op, const char *a_text,
                  const char *b_text, guint64 a, guint64 b)
{
  return Compare (file, line, op, a_text, b_text, a, b);
}

bool
muster_test_double (const char *file, int line, const char *op, const char *a_text,
                    const char *b_text, double a, double b)
{
  return Compare (file, line, op, a_text, b_text, a, b);
}

bool
muster_test_near (const char *file, int line, const char *a_text, const char *b_text, double a,
                  double b, double tolerance)
{
  const double gap = a > b ? a - b : b - a;
  if (gap <= tolerance)
    return true; // false for NaN
  ADD_FAILURE_AT (file, line) << a_text << " is " << a << ", " << b_text << " is " << b << ": "
                              << gap << " apart, over " << tolerance;
  return false;
}

bool
muster_test_pointer (const char *file, int line, const char *op, const char *a_text,
                     const char *b_text, const void *a, const void *b)
{
  return Compare (file, line, op, a_text, b_text, a, b);
}

bool
muster_test_string (const char *file, int line, const char *a_text, const char *b_text,
                    const char *a, const char *b)
{
  const testing::AssertionResult result = testing::internal::CmpHelperSTREQ (a_text, b_text, a, b);
  if (result)
    return true;
  ADD_FAILURE_AT (file, line) << result.message ();
  return false;
}

bool
muster_test_memory (const char *file, int line, const char *a_text, const char *b_text,
                    const void *a, size_t a_size, const void *b, size_t b_size)
{
  if (a_size == b_size && (a_size == 0 || memcmp (a, b, a_size) == 0))
    return true;
  size_t at = 0;
  const auto *x = static_cast<const unsigned char *> (a);
  const auto *y = static_cast<const unsigned char *> (b);
  while (at < a_size && at < b_size && x[at] == y[at])
    at++;
  ADD_FAILURE_AT (file, line) << a_text << " (" << a_size << " bytes) differs from " << b_text
                              << " (" << b_size << " bytes) at byte " << at;
  return false;
}

bool
muster_test_no_error (const char *file, int line, const char *text, const GError *error)
{
  if (error == nullptr)
    return true;
  ADD_FAILURE_AT (file, line) << text << " is " << Show (error);
  return false;
}

bool
muster_test_error (const char *file, int line, const char *text, const GError *error, GQuark domain,
                   int code)
{
  if (error != nullptr && g_error_matches (error, domain, code))
    return true;
  ADD_FAILURE_AT (file, line) << text << " is " << Show (error)
                              << "\nExpected: " << g_quark_to_string (domain) << " " << code;
  return false;
}

bool
muster_test_says (const char *file, int line, const char *text, const GError *error, GQuark domain,
                  int code, const char *words)
{
  if (!muster_test_error (file, line, text, error, domain, code))
    return false;
  if (strstr (error->message, words) != nullptr)
    return true;
  ADD_FAILURE_AT (file, line) << text << " is " << Show (error)
                              << "\nExpected to contain: " << words;
  return false;
}

bool
muster_test_death (const char *file, int line, const char *text, MusterTestDataFunc func,
                   gpointer data, const char *output_regex)
{
  testing::internal::DeathTest *made = nullptr;
  if (!testing::internal::DeathTest::Create (text, testing::ContainsRegex (output_regex), file,
                                             line, &made))
    return false;
  if (made == nullptr)
    return true;
  std::unique_ptr<testing::internal::DeathTest> death (made);
  if (death->AssumeRole () == testing::internal::DeathTest::EXECUTE_TEST) {
    func (data);
    death->Abort (testing::internal::DeathTest::TEST_DID_NOT_DIE);
    return false;
  }
  if (death->Passed (testing::internal::ExitedUnsuccessfully (death->Wait ())))
    return true;
  ADD_FAILURE_AT (file, line) << testing::internal::DeathTest::LastMessage ();
  return false;
}

void
muster_test_fail (const char *file, int line, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  ADD_FAILURE_AT (file, line) << Format (format, args);
  va_end (args);
}

void
muster_test_skip (const char *file, int line, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  GTEST_MESSAGE_AT_ (file, line, Format (format, args).c_str (), testing::TestPartResult::kSkip);
  va_end (args);
}

void
muster_test_trace (const char *file, int line, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  traces.clear ();
  traces.push_back (std::make_unique<testing::ScopedTrace> (file, line, Format (format, args)));
  va_end (args);
}

bool
muster_test_has_failed (void)
{
  return testing::Test::HasFailure ();
}

const char *
muster_test_tmpdir (void)
{
  static std::mutex mutex; // a test's threads may ask first, both at once
  const std::lock_guard<std::mutex> lock (mutex);
  if (tmpdir.empty ()) {
    const char *base = g_getenv ("TEST_TMPDIR");
    g_autofree char *name =
        g_build_filename (base ? base : g_get_tmp_dir (), "muster-XXXXXX", nullptr);
    if (g_mkdtemp (name) == nullptr)
      g_error ("mkdtemp %s failed", name);
    tmpdir = name;
  }
  return tmpdir.c_str ();
}

// The first type below parent that has neither muster's prefix nor GLib's own, nor
// json-glib's.
static std::string
FindForeignType (GType parent)
{
  guint n = 0;
  g_autofree GType *types = g_type_children (parent, &n);
  for (guint i = 0; i < n; i++) {
    const std::string name = g_type_name (types[i]);
    if (name.rfind ("Muster", 0) != 0 && name.rfind ("G", 0) != 0 && name.rfind ("_G", 0) != 0 &&
        name.rfind ("Json", 0) != 0)
      return name;
    const std::string below = FindForeignType (types[i]);
    if (!below.empty ())
      return below;
  }
  return "";
}

// GObject's types are the process's: one without a prefix meets a program's class of that name.
class TypesEnvironment : public testing::Environment
{
public:
  void
  TearDown () override
  {
    for (GType parent : {G_TYPE_OBJECT, G_TYPE_INTERFACE, G_TYPE_BOXED, G_TYPE_ENUM, G_TYPE_FLAGS})
      EXPECT_EQ (FindForeignType (parent), "") << "is a type's name without the prefix Muster";
  }
};

int
main (int argc, char **argv)
{
  testing::InitGoogleTest (&argc, argv);
  testing::AddGlobalTestEnvironment (new TypesEnvironment);
  // Under TSan and with threads about, a bare fork is not safe.
  testing::GTEST_FLAG (death_test_style) = "threadsafe";
  g_setenv ("G_MESSAGES_DEBUG", "", FALSE);
  g_log_set_always_fatal (static_cast<GLogLevelFlags> (G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL));
  // Not muster's own, which say what an operator must know, such as that a save has failed.
  for (const char *domain :
       {static_cast<const char *> (nullptr), "GLib", "GLib-GObject", "GLib-GIO", "Json"})
    g_log_set_fatal_mask (domain,
                          static_cast<GLogLevelFlags> (G_LOG_FATAL_MASK | G_LOG_LEVEL_WARNING));
  for (MusterTestCase *test = first_case; test != nullptr; test = test->next) {
    MusterTestFunc func = test->func;
    testing::RegisterTest (test->suite, test->name, nullptr, nullptr, test->file, test->line,
                           [func] () -> CTest * { return new CTest (func); });
  }
  return RUN_ALL_TESTS ();
}
