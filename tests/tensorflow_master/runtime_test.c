// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/runtime_private.h"
#include "tests/deadline.h"
#include "tests/doubles/fake_clock.h"
#include "tests/gtest_shim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <glib/gstdio.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAKE   "tests/tensorflow_master/libtensorflow_fake.so"
#define HELPER "tensorflow/muster-tensorflow"

static const MusterRuntimeOptions no_options;

/* What it told. */
typedef struct {
  GMutex lock;
  GCond changed;
  GPtrArray *texts; /* (element-type utf8) guarded by lock */
} Told;

static Told *
reports_new (void)
{
  Told *self = g_new0 (Told, 1);
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->texts = g_ptr_array_new_with_free_func (g_free);
  return self;
}

static void
reports_free (Told *self)
{
  g_ptr_array_unref (self->texts);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Told, reports_free)

static void
take_report (const char *text, gpointer user_data)
{
  Told *self = user_data;
  g_mutex_lock (&self->lock);
  g_ptr_array_add (self->texts, g_strdup (text));
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

/* The nth that it tells, from 0, borrowed; "" if that doesn't come within half a minute. */
static const char *
await_report (Told *self, guint n)
{
  gint64 until_us = g_get_monotonic_time () + 30 * G_USEC_PER_SEC;
  g_mutex_lock (&self->lock);
  while (self->texts->len <= n && g_cond_wait_until (&self->changed, &self->lock, until_us))
    ;
  const char *text = self->texts->len > n ? g_ptr_array_index (self->texts, n) : "";
  g_mutex_unlock (&self->lock);
  return text;
}

static void
misbehave (const char *how)
{
  if (how != NULL)
    g_setenv ("MUSTER_FAKE_TENSORFLOW", how, TRUE);
  else
    g_unsetenv ("MUSTER_FAKE_TENSORFLOW");
}

static MusterRuntime *
start (const char *how, const MusterRuntimeOptions *given, GError **error)
{
  MusterRuntimeOptions options = *given;
  options.library = options.library != NULL ? options.library : FAKE;
  options.helper = HELPER;
  misbehave (how);
  g_autoptr (MusterRuntime) runtime = muster_runtime_new (&options, error);
  gboolean serves =
      runtime != NULL && muster_runtime_await (runtime, MUSTER_WAIT_FOREVER, NULL, error);
  misbehave (NULL);
  return serves ? g_steal_pointer (&runtime) : NULL;
}

static gboolean
can_connect (guint32 host, guint16 port)
{
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons (port), .sin_addr.s_addr = htonl (host)};
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  gboolean is_connected = connect (fd, (struct sockaddr *)&address, sizeof address) == 0;
  close (fd);
  return is_connected;
}

static gboolean
is_alive (int pid)
{
  return kill (pid, 0) == 0 || errno != ESRCH;
}

MUSTER_TEST (Runtime, serves_on_loopback_whatever_the_library_binds)
{
  static const char *const ways[] = {NULL, "listen on IPv6"};
  for (gsize i = 0; i < G_N_ELEMENTS (ways); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterRuntime) runtime = start (ways[i], &no_options, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_STREQ (muster_runtime_version (runtime), "2.99.0-fake");
    MUSTER_EXPECT_TRUE (can_connect (INADDR_LOOPBACK, muster_runtime_port (runtime)));
    /* Bound to every interface, it would answer at any of this machine's addresses. */
    MUSTER_EXPECT_FALSE (can_connect (INADDR_LOOPBACK + 1, muster_runtime_port (runtime)));
  }
}

MUSTER_TEST (Runtime, gives_requests_numbers_that_dont_come_again)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRuntime) runtime = start ("draw numbers", &no_options, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (muster_runtime_version (runtime), "2.99.0-fake, new numbers");
}

/* A library that behaves so, or these options, and it doesn't serve: the error's code and words. */
#define EXPECT_NO_START(how, options, wanted, words)                                               \
  do {                                                                                             \
    g_autoptr (GError) error_ = NULL;                                                              \
    MUSTER_EXPECT_NULL (start (how, options, &error_));                                            \
    MUSTER_EXPECT_ERROR (error_, MUSTER_ERROR, wanted);                                            \
    MUSTER_TRACE ("%s", error_ != NULL ? error_->message : "it started");                          \
    MUSTER_EXPECT_TRUE (error_ != NULL && strstr (error_->message, words) != NULL);                \
  } while (0)

MUSTER_TEST (Runtime, does_not_serve_where_a_socket_is_open_to_others_all_the_same)
{
  EXPECT_NO_START ("go behind libc", &no_options, MUSTER_ERROR_INTERNAL,
                   "which other machines can reach");
}

MUSTER_TEST (Runtime, does_not_serve_at_another_port)
{
  EXPECT_NO_START ("elsewhere", &no_options, MUSTER_ERROR_INTERNAL, "doesn't listen on port");
}

MUSTER_TEST (Runtime, opens_files_only_in_its_directories)
{
  g_autofree char *inside = g_build_filename (muster_test_tmpdir (), "data", "file", NULL);
  g_autofree char *outside = g_build_filename (muster_test_tmpdir (), "secret", NULL);
  g_autofree char *link = g_build_filename (muster_test_tmpdir (), "data", "link", NULL);
  g_autofree char *data = g_path_get_dirname (inside);
  const MusterRuntimeOptions confined = {.directories = (const char *const[]){data, NULL}};
  MUSTER_ASSERT_EQ (g_mkdir (data, 0755), 0);
  MUSTER_ASSERT_TRUE (g_file_set_contents (outside, "secret", 6, NULL));
  MUSTER_ASSERT_EQ (symlink (outside, link), 0);
  g_setenv ("MUSTER_FAKE_TENSORFLOW_INSIDE", inside, TRUE);
  g_setenv ("MUSTER_FAKE_TENSORFLOW_OUTSIDE", outside, TRUE);
  EXPECT_NO_START ("open files", &no_options, MUSTER_ERROR_INVALID_ARGUMENT,
                   "inside: 0, outside: 0");
  EXPECT_NO_START ("open files", &confined, MUSTER_ERROR_INVALID_ARGUMENT,
                   "inside: 0, outside: 13");
  g_setenv ("MUSTER_FAKE_TENSORFLOW_OUTSIDE", link, TRUE);
  EXPECT_NO_START ("open files", &confined, MUSTER_ERROR_INVALID_ARGUMENT,
                   "inside: 0, outside: 13");
  g_setenv ("MUSTER_FAKE_TENSORFLOW_OUTSIDE", "/proc/self/environ", TRUE);
  EXPECT_NO_START ("open files", &confined, MUSTER_ERROR_INVALID_ARGUMENT,
                   "inside: 0, outside: 13");
}

/* What it may open with its library in a folder of that name: its data, and what is beside the
 * folder. */
static void
expect_beside (const char *name, const char *said)
{
  g_autofree char *folder = g_build_filename (muster_test_tmpdir (), name, "home", NULL);
  g_autofree char *package = g_build_filename (folder, name, NULL);
  g_autofree char *library = g_build_filename (package, "libtensorflow.so", NULL);
  g_autofree char *secret = g_build_filename (folder, "secret", NULL);
  g_autofree char *data = g_build_filename (folder, "data", NULL);
  g_autofree char *inside = g_build_filename (data, "file", NULL);
  g_autofree char *bytes = NULL;
  gsize size;
  const MusterRuntimeOptions options = {.library = library,
                                        .directories = (const char *const[]){data, NULL}};
  MUSTER_ASSERT_EQ (g_mkdir_with_parents (package, 0755), 0);
  MUSTER_ASSERT_EQ (g_mkdir (data, 0755), 0);
  MUSTER_ASSERT_TRUE (g_file_get_contents (FAKE, &bytes, &size, NULL));
  MUSTER_ASSERT_TRUE (g_file_set_contents (library, bytes, (gssize)size, NULL));
  MUSTER_ASSERT_TRUE (g_file_set_contents (secret, "secret", 6, NULL));
  g_setenv ("MUSTER_FAKE_TENSORFLOW_INSIDE", inside, TRUE);
  g_setenv ("MUSTER_FAKE_TENSORFLOW_OUTSIDE", secret, TRUE);
  EXPECT_NO_START ("open files", &options, MUSTER_ERROR_INVALID_ARGUMENT, said);
}

MUSTER_TEST (Runtime, reads_what_is_beside_its_package_only)
{
  expect_beside ("lib", "inside: 0, outside: 13");
  expect_beside ("tensorflow", "inside: 0, outside: 0");
}

MUSTER_TEST (Runtime, hands_on_what_tensorflow_says_of_its_failure)
{
  EXPECT_NO_START ("fail", &no_options, MUSTER_ERROR_RESOURCE_EXHAUSTED, "no more of that");
}

MUSTER_TEST (Runtime, says_how_it_died_at_its_start)
{
  EXPECT_NO_START ("abort", &no_options, MUSTER_ERROR_INTERNAL, "was killed by signal 6");
}

MUSTER_TEST (Runtime, that_closes_its_socket_ends)
{
  EXPECT_NO_START ("close its socket", &no_options, MUSTER_ERROR_INTERNAL, "during startup");
}

MUSTER_TEST (Runtime, is_refused_a_file_that_is_no_library)
{
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), "libtensorflow_cc.so", NULL);
  MUSTER_ASSERT_TRUE (g_file_set_contents (path, "#!/bin/sh\n", -1, NULL));
  const MusterRuntimeOptions options = {.library = path};
  EXPECT_NO_START (NULL, &options, MUSTER_ERROR_INVALID_ARGUMENT, "can't be loaded");
}

MUSTER_TEST (Runtime, is_refused_a_library_of_something_else)
{
  const MusterRuntimeOptions options = {.library = "libm.so.6"};
  EXPECT_NO_START (NULL, &options, MUSTER_ERROR_INVALID_ARGUMENT, "TF_Version");
}

MUSTER_TEST (Runtime, that_hangs_at_its_start_is_ended)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *pids = g_build_filename (muster_test_tmpdir (), "pids", NULL);
  g_autofree char *text = NULL;
  g_setenv ("MUSTER_FAKE_TENSORFLOW_PIDS", pids, TRUE);
  const MusterRuntimeOptions options = {.start_limit_us = 2 * MUSTER_SECOND};
  MUSTER_EXPECT_NULL (start ("hang", &options, &error));
  g_unsetenv ("MUSTER_FAKE_TENSORFLOW_PIDS");
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      ": it has been starting its server for ");
  MUSTER_ASSERT_TRUE (g_file_get_contents (pids, &text, NULL, NULL));
  MUSTER_EXPECT_FALSE (is_alive (atoi (text)));
}

/* The process that the fake has noted in a file, once it has. */
static int
await_pid (const char *path)
{
  g_autofree char *text = NULL;
  gint64 until_us = g_get_monotonic_time () + 30 * G_USEC_PER_SEC;
  while (g_get_monotonic_time () < until_us) {
    g_clear_pointer (&text, g_free);
    if (g_file_get_contents (path, &text, NULL, NULL) && strchr (text, '\n') != NULL)
      return atoi (text);
    g_thread_yield ();
  }
  return 0;
}

MUSTER_TEST (Runtime, whose_start_hangs_is_waited_for_until_cancelled_or_late)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autofree char *pids = g_build_filename (muster_test_tmpdir (), "hanging", NULL);
  g_setenv ("MUSTER_FAKE_TENSORFLOW_PIDS", pids, TRUE);
  misbehave ("hang");
  MusterRuntime *runtime =
      muster_runtime_new (&(MusterRuntimeOptions){.library = FAKE, .helper = HELPER}, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  int pid = await_pid (pids);
  g_unsetenv ("MUSTER_FAKE_TENSORFLOW_PIDS");
  misbehave (NULL);
  MUSTER_ASSERT_TRUE (pid != 0);

  gint64 soon_us = test_deadline_in (MUSTER_MILLISECOND);
  MUSTER_EXPECT_FALSE (muster_runtime_await (runtime, soon_us, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_TRUE (strstr (error->message, "from '" FAKE "' is still starting: it has been ") !=
                      NULL);
  g_clear_error (&error);
  g_cancellable_cancel (cancellable);
  MUSTER_EXPECT_FALSE (muster_runtime_await (runtime, MUSTER_WAIT_FOREVER, cancellable, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_NULL (muster_runtime_version (runtime));
  MUSTER_EXPECT_FALSE (muster_runtime_is_over (runtime));
  MUSTER_EXPECT_TRUE (is_alive (pid));
  muster_runtime_unref (runtime);
  MUSTER_EXPECT_FALSE (is_alive (pid));
}

MUSTER_TEST (Runtime, ends_with_its_last_owner)
{
  g_autoptr (GError) error = NULL;
  MusterRuntime *runtime = start (NULL, &no_options, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  int pid = muster_runtime_pid (runtime, NULL);
  MusterRuntime *other = muster_runtime_ref (runtime);
  muster_runtime_unref (runtime);
  MUSTER_EXPECT_TRUE (is_alive (pid));
  muster_runtime_unref (other);
  MUSTER_EXPECT_FALSE (is_alive (pid));
}

static gpointer
start_in_thread (gpointer error)
{
  return start (NULL, &no_options, error);
}

/* The kernel's signal at a parent's death comes at the death of the thread that made the child. */
MUSTER_TEST (Runtime, lives_on_when_the_thread_that_asked_for_it_has_ended)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRuntime) runtime =
      g_thread_join (g_thread_new ("asks", start_in_thread, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (can_connect (INADDR_LOOPBACK, muster_runtime_port (runtime)));
  guint n_starts;
  MUSTER_EXPECT_TRUE (is_alive (muster_runtime_pid (runtime, &n_starts)));
  MUSTER_EXPECT_EQ (n_starts, 1);
}

MUSTER_TEST (Runtime, ends_with_its_last_owner_though_it_is_stopped)
{
  g_autoptr (GError) error = NULL;
  MusterRuntime *runtime = start (NULL, &no_options, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  int pid = muster_runtime_pid (runtime, NULL);
  kill (pid, SIGSTOP);
  muster_runtime_unref (runtime);
  MUSTER_EXPECT_FALSE (is_alive (pid));
}

/* Its parent lives on, so that the kernel has nothing to do with it. */
MUSTER_TEST (Runtime, helper_ends_when_nobody_holds_its_socket)
{
  g_autoptr (GError) error = NULL;
  int ends[2];
  MUSTER_ASSERT_EQ (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  g_autoptr (GSubprocessLauncher) launcher = g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_NONE);
  g_subprocess_launcher_take_fd (launcher, ends[1], 3);
  g_subprocess_launcher_setenv (launcher, "MUSTER_FAKE_TENSORFLOW", "hang", TRUE);
  g_autoptr (GSubprocess) helper =
      g_subprocess_launcher_spawn (launcher, &error, HELPER, FAKE, "2222", NULL);
  MUSTER_ASSERT_NO_ERROR (error);
  g_object_run_dispose (G_OBJECT (launcher)); /* our copy of the helper's end */
  close (ends[0]);
  g_subprocess_wait (helper, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (g_subprocess_get_if_exited (helper));
  MUSTER_EXPECT_EQ (g_subprocess_get_exit_status (helper), 0);
}

MUSTER_TEST (Runtime, that_is_killed_is_started_again_at_the_same_port)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (Told) told = reports_new ();
  const MusterRuntimeOptions options = {.report = take_report, .user_data = told};
  g_autoptr (MusterRuntime) runtime = start (NULL, &options, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  guint n_starts, port = muster_runtime_port (runtime);
  int first = muster_runtime_pid (runtime, &n_starts);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (await_report (told, 0), "TensorFlow 2.99.0-fake from '"));
  MUSTER_EXPECT_EQ (n_starts, 1);

  kill (first, SIGKILL);
  MUSTER_EXPECT_TRUE (strstr (await_report (told, 1), "was killed by signal 9") != NULL);
  MUSTER_ASSERT_TRUE (muster_runtime_await (runtime, test_deadline (), NULL, &error));
  MUSTER_EXPECT_TRUE (strstr (await_report (told, 2), "restarted as process") != NULL);
  int second = muster_runtime_pid (runtime, &n_starts);
  MUSTER_EXPECT_EQ (n_starts, 2);
  MUSTER_EXPECT_NE (second, first);
  MUSTER_EXPECT_EQ (muster_runtime_port (runtime), port);
  MUSTER_EXPECT_TRUE (can_connect (INADDR_LOOPBACK, (guint16)port));
}

/* Its clock stands still, so that it rests until it is asked. */
MUSTER_TEST (Runtime, that_dies_again_and_again_is_started_less_and_less_often)
{
  static const char *const pauses[] = {
      "restarting",         "retrying in 1.0 s",  "retrying in 2.0 s",
      "retrying in 4.0 s",  "retrying in 8.0 s",  "retrying in 16.0 s",
      "retrying in 30.0 s", "retrying in 30.0 s", "retrying in 30.0 s"};
  g_autoptr (GError) error = NULL;
  g_autoptr (Told) told = reports_new ();
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  muster_fake_clock_hold (clock);
  const MusterRuntimeOptions options = {
      .clock = MUSTER_CLOCK (clock), .report = take_report, .user_data = told};
  MusterRuntime *runtime = start (NULL, &options, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  misbehave ("fail");
  kill (muster_runtime_pid (runtime, NULL), SIGKILL);
  for (guint i = 0; i < G_N_ELEMENTS (pauses); i++) {
    const char *text = await_report (told, i + 1);
    MUSTER_TRACE ("%s", text);
    MUSTER_EXPECT_TRUE (g_str_has_suffix (text, pauses[i]));
    if (i == 0)
      continue;
    muster_fake_clock_wait_for_waiters (clock, 1);
    g_clear_error (&error);
    MUSTER_EXPECT_FALSE (muster_runtime_await (runtime, MUSTER_WAIT_FOREVER, NULL, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
    MUSTER_EXPECT_STREQ (error->message, text);
    muster_fake_clock_crank (clock);
  }
  misbehave (NULL);
  muster_runtime_unref (runtime);
}

MUSTER_TEST (Runtime, that_starts_again_is_waited_for_until_cancelled_or_late)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (Told) told = reports_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  const MusterRuntimeOptions options = {.report = take_report, .user_data = told};
  g_autoptr (MusterRuntime) runtime = start (NULL, &options, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  misbehave ("hang");
  kill (muster_runtime_pid (runtime, NULL), SIGKILL);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (await_report (told, 1), "restarting"));

  gint64 soon_us = test_deadline_in (MUSTER_MILLISECOND);
  MUSTER_EXPECT_FALSE (muster_runtime_await (runtime, soon_us, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  g_clear_error (&error);
  g_cancellable_cancel (cancellable);
  MUSTER_EXPECT_FALSE (muster_runtime_await (runtime, MUSTER_WAIT_FOREVER, cancellable, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  misbehave (NULL);
}

MUSTER_TEST (Runtime, helper_is_nothing_to_be_started_by_hand)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GSubprocess) helper =
      g_subprocess_new (G_SUBPROCESS_FLAGS_STDERR_PIPE, &error, HELPER, FAKE, "2222", NULL);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *said = NULL;
  MUSTER_EXPECT_TRUE (g_subprocess_communicate_utf8 (helper, NULL, NULL, NULL, &said, &error));
  MUSTER_EXPECT_EQ (g_subprocess_get_exit_status (helper), 2);
  MUSTER_EXPECT_TRUE (strstr (said, "--master=tensorflow") != NULL);
}
