// SPDX-License-Identifier: Apache-2.0
#include "base/files/read_file_private.h"

#include "base/error.h"
#include "tests/gtest_shim.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_SIZE 10000

/* A folder of its own, with a path in it. */
typedef struct {
  char *folder, *path;
} Fixture;

static void
fixture_clear (Fixture *f)
{
  g_unlink (f->path);
  g_rmdir (f->path);
  g_rmdir (f->folder);
  g_free (f->path);
  g_free (f->folder);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

static Fixture
set_up (void)
{
  Fixture f = {.folder = g_dir_make_tmp ("read-XXXXXX", NULL)};
  f.path = g_build_filename (f.folder, "file", NULL);
  return f;
}

static gboolean
read_it (const char *path, gboolean takes_pipe, char **text, gsize *size, GError **error)
{
  const MusterFile file = {path, "the file", MAX_SIZE, takes_pipe};
  return muster_file_read (&file, text, size, error);
}

/* That it is refused, and in these words. */
static void
expect_refused (const char *path, gboolean takes_pipe, const char *words)
{
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  gsize size;
  MUSTER_EXPECT_FALSE (read_it (path, takes_pipe, &text, &size, &error));
  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, words) != NULL);
}

MUSTER_TEST (ReadFile, reads_a_file_up_to_its_limit)
{
  g_auto (Fixture) f = set_up ();
  g_autofree char *largest = g_strnfill (MAX_SIZE, 'a');
  g_autofree char *text = NULL, *none = NULL;
  gsize size;

  MUSTER_ASSERT_TRUE (g_file_set_contents (f.path, largest, -1, NULL));
  MUSTER_EXPECT_TRUE (read_it (f.path, FALSE, &text, &size, NULL));
  MUSTER_EXPECT_STREQ (text, largest);
  MUSTER_EXPECT_EQ (size, MAX_SIZE);

  MUSTER_EXPECT_TRUE (read_it ("/dev/null", FALSE, &none, &size, NULL));
  MUSTER_EXPECT_STREQ (none, "");
}

MUSTER_TEST (ReadFile, refuses_a_larger_one_before_it_takes_memory)
{
  g_auto (Fixture) f = set_up ();
  const int fd = open (f.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  MUSTER_ASSERT_EQ (ftruncate (fd, (off_t)1 << 40), 0); /* sparse */
  close (fd);

  expect_refused (f.path, TRUE, "is too large: the limit is 10000 bytes");
}

/* Nobody writes to it: a blocking open would wait for ever. */
MUSTER_TEST (ReadFile, waits_for_no_pipe)
{
  g_auto (Fixture) f = set_up ();
  MUSTER_ASSERT_EQ (mkfifo (f.path, 0600), 0);

  expect_refused (f.path, FALSE, "it is a pipe; use a regular file");
}

static gpointer
write_late (gpointer data)
{
  const int fd = GPOINTER_TO_INT (data);
  g_autofree char *half = g_strnfill (3000, 'b');
  for (int i = 0; i < 2; i++)
    if (write (fd, half, 3000) != 3000)
      return NULL;
  close (fd);
  return data;
}

MUSTER_TEST (ReadFile, reads_a_command_s_pipe_to_its_end)
{
  int ends[2];
  MUSTER_ASSERT_EQ (pipe (ends), 0);
  g_autofree char *path = g_strdup_printf ("/dev/fd/%d", ends[0]);
  GThread *writer = g_thread_new ("writer", write_late, GINT_TO_POINTER (ends[1]));
  g_autofree char *text = NULL;
  gsize size = 0;

  MUSTER_EXPECT_TRUE (read_it (path, TRUE, &text, &size, NULL));
  MUSTER_EXPECT_EQ (size, 6000);
  MUSTER_EXPECT_TRUE (g_thread_join (writer) != NULL);
  close (ends[0]);
}

static gpointer
write_without_end (gpointer data)
{
  const int fd = GPOINTER_TO_INT (data);
  g_autofree char *all = g_strnfill (MAX_SIZE + 1, 'c');
  const gssize n = write (fd, all, MAX_SIZE + 1);
  return GINT_TO_POINTER (n == MAX_SIZE + 1);
}

static gpointer
write_to_name (gpointer path)
{
  const int fd = open (path, O_WRONLY); /* waits for a reader */
  MUSTER_EXPECT_EQ (write (fd, "late", 4), 4);
  close (fd);
  return NULL;
}

MUSTER_TEST (ReadFile, waits_for_the_first_writer_of_a_command_s_pipe)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  gsize size = 0;
  MUSTER_ASSERT_EQ (mkfifo (f.path, 0600), 0);

  GThread *writer = g_thread_new ("writer", write_to_name, f.path);
  MUSTER_EXPECT_TRUE (read_it (f.path, TRUE, &text, &size, &error));
  g_thread_join (writer);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (text, "late");
}

MUSTER_TEST (ReadFile, reads_no_more_of_a_pipe_than_the_limit)
{
  int ends[2];
  MUSTER_ASSERT_EQ (pipe (ends), 0);
  g_autofree char *path = g_strdup_printf ("/dev/fd/%d", ends[0]);
  GThread *writer = g_thread_new ("writer", write_without_end, GINT_TO_POINTER (ends[1]));

  expect_refused (path, TRUE, "is too large");

  MUSTER_EXPECT_TRUE (g_thread_join (writer) != NULL);
  close (ends[0]);
  close (ends[1]);
}

MUSTER_TEST (ReadFile, reads_neither_folders_nor_devices_nor_sockets)
{
  g_auto (Fixture) f = set_up ();
  expect_refused (f.folder, TRUE, "it is a directory; use a regular file");
  expect_refused ("/dev/zero", TRUE, "it is a device; use a regular file");
  expect_refused (f.path, TRUE, "No such file or directory");

  struct sockaddr_un address = {.sun_family = AF_UNIX};
  g_strlcpy (address.sun_path, f.path, sizeof address.sun_path);
  const int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  MUSTER_ASSERT_EQ (bind (fd, (const struct sockaddr *)&address, sizeof address), 0);
  expect_refused (f.path, TRUE, "can't read the file");
  close (fd);
}

/* What happens between looking at it and reading it. */
MUSTER_TEST (ReadFile, reads_what_it_opened_however_that_changes)
{
  g_auto (Fixture) f = set_up ();
  const MusterFile file = {f.path, NULL, MAX_SIZE, FALSE};
  g_autofree char *removed = NULL, *grown = NULL, *larger = NULL;
  g_autoptr (GError) error = NULL;
  struct stat is;
  gsize size;
  MUSTER_ASSERT_TRUE (g_file_set_contents (f.path, "text", -1, NULL));
  const int fd = muster_file_open (&file, &is, NULL), again = muster_file_open (&file, &is, NULL);
  FILE *more = fopen (f.path, "a");
  g_autofree char *rest = g_strnfill (5000, 'd'), *too_much = g_strnfill (MAX_SIZE, 'e');

  fputs (rest, more);
  fflush (more);
  g_unlink (f.path);
  MUSTER_EXPECT_TRUE (muster_file_read_fd (&file, fd, &is, &grown, &size, NULL));
  MUSTER_EXPECT_EQ (size, 5004);

  fputs (too_much, more);
  fclose (more);
  MUSTER_EXPECT_FALSE (muster_file_read_fd (&file, again, &is, &larger, &size, &error));
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_INVALID_ARGUMENT));

  MUSTER_EXPECT_FALSE (muster_file_read (&file, &removed, NULL, NULL));
  close (fd);
  close (again);
}
