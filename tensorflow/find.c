// SPDX-License-Identifier: Apache-2.0
/* Searches for TensorFlow's library: at a given path, in a virtual environment, in python3's
 * packages, in the system's folders; and for the helper program. */
#include "tensorflow/find_private.h"

#include "base/clock.h"
#include "tensorflow/read_line_private.h"

#include <dlfcn.h>
#include <gio/gunixinputstream.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#define HELPER       "muster-tensorflow"
#define PYTHON_LIMIT (5 * MUSTER_SECOND)

/* How to install TensorFlow and how to set its path. */
#define ADVICE                                                                                     \
  "install it (python3 -m venv DIR && DIR/bin/pip install tensorflow-cpu) and use "                \
  "tensorflow:DIR, or tensorflow:PATH with the path of libtensorflow_cc.so.2"

/* --- TensorFlow's library --- */

static gboolean
is_library (const char *name)
{
  return g_str_has_prefix (name, "libtensorflow_cc.so") ||
         g_str_has_prefix (name, "libtensorflow.so");
}

/* The library in exactly this folder; of several versions, the one with the shortest name. */
static char *
library_in (const char *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  g_autofree char *best = NULL;
  for (const char *name = dir != NULL ? g_dir_read_name (dir) : NULL; name != NULL;
       name = g_dir_read_name (dir)) {
    if (is_library (name) && (best == NULL || strlen (name) < strlen (best))) {
      g_free (best);
      best = g_strdup (name);
    }
  }
  return best != NULL ? g_build_filename (folder, best, NULL) : NULL;
}

/* The package in a virtual environment, whatever its Python version. */
static char *
library_in_environment (const char *folder)
{
  static const char *const libs[] = {"lib", "lib64"};
  char *found = NULL;
  for (gsize i = 0; found == NULL && i < G_N_ELEMENTS (libs); i++) {
    g_autofree char *lib = g_build_filename (folder, libs[i], NULL);
    g_autoptr (GDir) dir = g_dir_open (lib, 0, NULL);
    const char *name;
    while (found == NULL && dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
      g_autofree char *package = g_build_filename (lib, name, "site-packages", "tensorflow", NULL);
      if (g_str_has_prefix (name, "python3"))
        found = library_in (package);
    }
  }
  return found;
}

/* The library in a folder of any kind. */
static char *
library_below (const char *folder)
{
  g_autofree char *package = g_build_filename (folder, "tensorflow", NULL);
  g_autofree char *lib = g_build_filename (folder, "lib", NULL);
  char *found = library_in (folder);
  if (found == NULL)
    found = library_in_environment (folder);
  if (found == NULL)
    found = library_in (package);
  return found != NULL ? found : library_in (lib);
}

static char *
library_at (const char *path, GError **error)
{
  g_autofree char *at = g_str_has_prefix (path, "~/")
                            ? g_build_filename (g_get_home_dir (), path + 2, NULL)
                            : g_canonicalize_filename (path, NULL);
  if (g_file_test (at, G_FILE_TEST_IS_REGULAR))
    return g_steal_pointer (&at);
  char *found = g_file_test (at, G_FILE_TEST_IS_DIR) ? library_below (at) : NULL;
  if (found != NULL)
    return found;
  muster_fail (error, MUSTER_ERROR_NOT_FOUND,
               g_file_test (at, G_FILE_TEST_EXISTS)
                   ? "TensorFlow not found in '%s'; " ADVICE
                   : "'%s' (from tensorflow:PATH) doesn't exist; " ADVICE,
               at);
  return NULL;
}

/* --- without a path --- */

/* The line that python3 prints, or NULL. */
static char *
ask_python (const char *query)
{
  MusterClock *clock = muster_system_clock ();
  g_autoptr (GSubprocess) python =
      g_subprocess_new (G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_SILENCE, NULL,
                        "python3", "-c", query, NULL);
  if (python == NULL)
    return NULL;
  int fd = g_unix_input_stream_get_fd (G_UNIX_INPUT_STREAM (g_subprocess_get_stdout_pipe (python)));
  char *line =
      muster_runtime_read_line (fd, muster_clock_now_us (clock) + PYTHON_LIMIT, NULL, NULL);
  g_subprocess_force_exit (python);
  g_subprocess_wait (python, NULL, NULL);
  return line;
}

/* Asks python3, without the current folder in its path, and without loading TensorFlow. */
static char *
library_of_python (void)
{
  g_autofree char *package =
      ask_python ("import sys\n"
                  "sys.path = [p for p in sys.path if p]\n"
                  "import importlib.util\n"
                  "found = importlib.util.find_spec('tensorflow')\n"
                  "print(found.submodule_search_locations[0] if found else '')\n");
  return package != NULL && g_path_is_absolute (package) ? library_in (package) : NULL;
}

static char *
library_of_variable (const char *name, GString *looked)
{
  const char *folder = g_getenv (name);
  gboolean is_set = folder != NULL && g_path_is_absolute (folder);
  if (is_set)
    g_string_append_printf (looked, "$%s ('%s'), ", name, folder);
  else
    g_string_append_printf (looked, "$%s (not set), ", name);
  return is_set ? library_below (folder) : NULL;
}

char *
muster_runtime_find_library (const char *path, GError **error)
{
  static const char *const variables[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
  static const char *const folders[] = {"/usr/local/lib", "/usr/lib"};
  if (path != NULL)
    return library_at (path, error);
  g_autoptr (GString) looked = g_string_new (NULL);
  char *found = NULL;
  for (gsize i = 0; found == NULL && i < G_N_ELEMENTS (variables); i++)
    found = library_of_variable (variables[i], looked);
  if (found == NULL)
    found = library_of_python ();
  for (gsize i = 0; found == NULL && i < G_N_ELEMENTS (folders); i++)
    found = library_in (folders[i]);
  if (found == NULL)
    muster_fail (error, MUSTER_ERROR_NOT_FOUND,
                 "TensorFlow not found (searched %sthe packages of the PATH's python3, "
                 "/usr/local/lib and /usr/lib); " ADVICE,
                 looked->str);
  return found;
}

/* --- the helper program */

/* The folder of the program or library that contains this code. */
static char *
own_folder (void)
{
  Dl_info info;
  struct link_map *map = NULL;
  const char *name = "/proc/self/exe"; /* dladdr gives an empty name for the program itself */
  if (dladdr1 ((void *)muster_runtime_find_helper, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 &&
      map != NULL && map->l_name[0] != '\0')
    name = map->l_name;
  char *real = realpath (name, NULL);
  char *folder = real != NULL ? g_path_get_dirname (real) : NULL;
  free (real);
  return folder;
}

char *
muster_runtime_find_helper (GError **error)
{
  /* installed beside bin or lib; beside lib/TRIPLET; in the build tree */
  static const char *const from_here[] = {"../libexec/muster", "../../libexec/muster",
                                          "../tensorflow"};
  const char *named = g_getenv ("MUSTER_TENSORFLOW_HELPER");
  if (named != NULL && *named != '\0')
    return g_canonicalize_filename (named, NULL);
  g_autofree char *folder = own_folder ();
  for (gsize i = 0; folder != NULL && i < G_N_ELEMENTS (from_here); i++) {
    g_autofree char *path = g_build_filename (folder, from_here[i], HELPER, NULL);
    if (g_file_test (path, G_FILE_TEST_IS_EXECUTABLE))
      return g_canonicalize_filename (path, NULL);
  }
  muster_fail (error, MUSTER_ERROR_NOT_FOUND,
               "'" HELPER "' not found (searched libexec/muster beside '%s'); install it, or set "
               "MUSTER_TENSORFLOW_HELPER",
               folder != NULL ? folder : "this program");
  return NULL;
}
