// SPDX-License-Identifier: Apache-2.0
#include "tests/misuse/misuse.h"

#include "base/error.h"
#include "tests/gtest_shim.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Every public function, called wrong (docs/api-conventions.md, "Misuse"): each call in a child
 * process, which must neither crash nor hang. What there is to call is read from the headers. */

#define LONGEST_CALL_S 60 /* of wall time, on a machine that is busy */

static gpointer
misuse_pointer (MisuseCall *call, guint i)
{
  return call->pointers[i];
}

static gboolean
misuse_do_nothing (void)
{
  return FALSE;
}

/* The answer of an …_async (). */
static MisuseCall *asked;

static void
misuse_answered (GObject *source, GAsyncResult *result, gpointer user_data)
{
  (void)source, (void)user_data;
  if (G_IS_TASK (result) && g_task_had_error (G_TASK (result)))
    (void)g_task_propagate_pointer (G_TASK (result), &asked->error);
  asked->is_answered = TRUE;
}

static gpointer
misuse_function (MisuseCall *call, guint i)
{
  if (call->pointers[i] == NULL)
    return NULL;
  if (strcmp (call->function->parameters[i].type, "GAsyncReadyCallback") != 0)
    return (gpointer)misuse_do_nothing;
  asked = call;
  return (gpointer)misuse_answered;
}

static gboolean
is_count (const MisuseFunction *function, guint i)
{
  const MisuseParameter *it = &function->parameters[i];
  if (it->is_unsigned && (strcmp (it->name, "n") == 0 || g_str_has_prefix (it->name, "n_")))
    return TRUE;
  for (guint j = 0; j < function->n_parameters; j++)
    if (function->parameters[j].count == (int)i)
      return TRUE;
  return FALSE;
}

static gint64
misuse_number (MisuseCall *call, guint i)
{
  return is_count (call->function, i) ? call->count : call->number;
}

static GError **
misuse_error (MisuseCall *call)
{
  return call->without_error ? NULL : &call->error;
}

#include "tests/misuse/calls.inc"

/* --- what a call should have given --- */

static gboolean
is_refused (const MisuseCall *call, guint i)
{
  const MisuseParameter *it = &call->function->parameters[i];
  if (!it->is_pointer || it->is_nullable || call->pointers[i] != NULL)
    return FALSE;
  if (it->count < 0)
    return TRUE;
  return call->function->parameters[it->count].is_unsigned ? call->count != 0 : call->count > 0;
}

static gboolean
refuses_any (const MisuseCall *call)
{
  gboolean refuses = FALSE;
  for (guint i = 0; i < call->function->n_parameters; i++)
    refuses = refuses || is_refused (call, i);
  return refuses;
}

static gboolean
is_neutral (const MisuseCall *call)
{
  switch (call->function->kind) {
  case MISUSE_POINTER:
  case MISUSE_BOOLEAN:
    return call->result == 0;
  case MISUSE_NUMBER:
    return call->result == 0 || call->result == -1 ||
           strcmp (call->function->name, "muster_error_to_wire") == 0;
  default:
    return TRUE;
  }
}

/* (transfer full) (nullable) what is wrong with what an error's function gave. */
static char *
judge_error (const MisuseCall *call)
{
  if (call->n_criticals > 0)
    return g_strdup_printf ("a critical: %s", call->critical);
  if (refuses_any (call) && !call->without_error &&
      !g_error_matches (call->error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT))
    return g_strdup_printf ("not INVALID_ARGUMENT but %s",
                            call->error != NULL ? call->error->message : "no error");
  if ((refuses_any (call) || call->error != NULL) && !is_neutral (call))
    return g_strdup_printf ("a result with an error: %s",
                            call->error != NULL ? call->error->message : "");
  if (call->error == NULL && !call->without_error && call->function->kind == MISUSE_BOOLEAN &&
      !call->result)
    return g_strdup ("FALSE without an error");
  return NULL;
}

/* It has no GError, but its answer has. */
static char *
judge_async (const MisuseCall *call)
{
  if (call->n_criticals > 1)
    return g_strdup_printf ("%u criticals", call->n_criticals);
  if (call->n_criticals == 1 || asked == NULL || !refuses_any (call))
    return NULL;
  return g_error_matches (call->error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT)
             ? NULL
             : g_strdup_printf ("neither a critical nor INVALID_ARGUMENT, but %s",
                                call->error != NULL ? call->error->message : "no error");
}

static char *
judge (const MisuseCall *call)
{
  g_autofree char *start = g_strconcat (call->function->name, ": ", NULL);

  if (call->function->has_error)
    return judge_error (call);
  if (g_str_has_suffix (call->function->name, "_async"))
    return judge_async (call);
  if (!refuses_any (call))
    return NULL;
  if (call->n_criticals != 1)
    return g_strdup_printf ("%u criticals", call->n_criticals);
  if (!g_str_has_prefix (call->critical, start))
    return g_strdup_printf ("a critical of another function: %s", call->critical);
  return is_neutral (call) ? NULL : g_strdup ("a critical, but a result");
}

/* --- in the child --- */

static void
on_log (const char *domain G_GNUC_UNUSED, GLogLevelFlags level, const char *message,
        gpointer user_data)
{
  MisuseCall *call = user_data;
  if ((level & G_LOG_LEVEL_ERROR) != 0)
    g_printerr ("%s\n", message);
  if ((level & G_LOG_LEVEL_CRITICAL) == 0)
    return;
  if (call->n_criticals++ == 0)
    call->critical = g_strdup (message);
}

typedef enum {
  GIVE_NOTHING,
  GIVE_FIRST, /* the instance */
  GIVE_ALL,
  GIVE_ALL_REQUIRED, /* NULL wherever that is fine */
} MisuseGiven;

typedef struct {
  MisuseGiven given;
  int but; /* with GIVE_ALL this one is NULL */
  gint64 number;
  gint64 count;
  gboolean without_error;
} MisuseWay;

static gboolean
is_given (const MisuseFunction *function, const MisuseWay *way, guint i)
{
  const MisuseParameter *it = &function->parameters[i];
  if (!it->is_pointer || strcmp (it->type, "GError **") == 0 || (int)i == way->but)
    return FALSE;
  if (way->given == GIVE_FIRST)
    return i == 0;
  if (way->given == GIVE_ALL || strcmp (it->type, "GAsyncReadyCallback") == 0)
    return way->given != GIVE_NOTHING;
  return way->given == GIVE_ALL_REQUIRED && !it->is_nullable;
}

/* Whether it can be called that way: there is a maker for all that is given. */
static gboolean
can_be_made (const MisuseFunction *function, const MisuseWay *way)
{
  for (guint i = 0; i < function->n_parameters; i++)
    if (is_given (function, way, i) && function->parameters[i].is_opaque &&
        misuse_is_unmade (function->parameters[i].type))
      return FALSE;
  return TRUE;
}

static void
give (MisuseCall *call, const MisuseWay *way)
{
  for (guint i = 0; i < call->function->n_parameters; i++) {
    const MisuseParameter *it = &call->function->parameters[i];
    if (!is_given (call->function, way, i))
      continue;
    call->pointers[i] = it->is_callback ? call : misuse_make (call->function->name, it->type);
    if (call->pointers[i] == NULL && it->is_opaque)
      g_error ("%s: no maker for '%s': add one to makers.c", call->function->name, it->type);
    if (call->pointers[i] == NULL)
      call->pointers[i] = g_malloc0 (1 << 16);
  }
}

static char *
try_it (const MisuseFunction *function, const MisuseWay *way)
{
  MisuseCall call = {.function = function,
                     .number = way->number,
                     .count = way->count,
                     .without_error = way->without_error};
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR);
  g_log_set_default_handler (on_log, &call);
  asked = NULL;
  give (&call, way);
  call.n_criticals = 0;
  alarm (LONGEST_CALL_S);
  function->call (&call);
  while (asked != NULL && call.n_criticals == 0 && !call.is_answered)
    g_main_context_iteration (NULL, TRUE);
  alarm (0);
  return judge (&call);
}

/* --- in the test --- */

typedef struct {
  const MisuseFunction *function;
  MisuseWay way;
} MisuseCase;

static char *
describe (const MisuseCase *it)
{
  static const char *const given[] = {"NULL for all", "NULL for all but the first", "NULL for none",
                                      "NULL for what may be"};
  if (it->way.but >= 0)
    return g_strdup_printf ("%s: '%s' is NULL, numbers are %" G_GINT64_FORMAT, it->function->name,
                            it->function->parameters[it->way.but].name, it->way.number);
  return g_strdup_printf ("%s: %s, numbers are %" G_GINT64_FORMAT "%s", it->function->name,
                          given[it->way.given], it->way.number,
                          it->way.without_error ? ", no place for an error" : "");
}

/* The cases from *next on, so many at most; *next is where it is. */
static void
call_some (const MisuseCase *cases, gsize n, guint *next, guint most, int fd)
{
  for (guint i = 0; i < most && *next < n; i++, (*next)++) {
    const MisuseCase *it = &cases[*next];
    g_autofree char *verdict = try_it (it->function, &it->way);
    g_autofree char *what = verdict != NULL ? describe (it) : NULL;
    if (verdict != NULL)
      dprintf (fd, "%s: %s\n", what, verdict);
  }
}

static void
enter_folder (void)
{
  g_autofree char *root = g_get_current_dir ();
  g_setenv ("MISUSE_ROOT", root, TRUE);
  g_autofree char *folder = g_dir_make_tmp (NULL, NULL);
  if (folder == NULL || g_chdir (folder) != 0)
    _exit (3);
}

/* Runs a child for up to most of the cases, and adds its verdicts to what went wrong. */
static void
run_child (const MisuseCase *cases, gsize n, guint *next, guint most, GString *wrong)
{
  int fds[2], status = 0;
  char bytes[4096];
  gssize got;
  if (pipe (fds) != 0)
    g_error ("no pipe");
  pid_t child = fork ();
  if (child == 0) {
    close (fds[0]);
    enter_folder ();
    call_some (cases, n, next, most, fds[1]);
    _exit (0);
  }
  close (fds[1]);
  while ((got = read (fds[0], bytes, sizeof bytes)) > 0)
    g_string_append_len (wrong, bytes, got);
  close (fds[0]);
  waitpid (child, &status, 0);
  if (WIFEXITED (status) && WEXITSTATUS (status) == 0)
    return;
  g_autofree char *what = describe (&cases[*next]);
  if (WIFSIGNALED (status) && WTERMSIG (status) == SIGALRM)
    g_string_append_printf (wrong, "%s: still runs after %d s\n", what, LONGEST_CALL_S);
  else
    g_string_append_printf (wrong, "%s: dies (%s)\n", what,
                            WIFSIGNALED (status) ? g_strsignal (WTERMSIG (status)) : "exit");
  (*next)++;
}

/* most: how many calls a child makes, one after the other. */
static void
run_cases (GArray *cases, guint most)
{
  g_autoptr (GString) wrong = g_string_new (NULL);
  guint *next =
      mmap (NULL, sizeof *next, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

  MUSTER_ASSERT_TRUE (cases->len > 0);
  while (*next < cases->len)
    run_child ((const MisuseCase *)(gpointer)cases->data, cases->len, next, most, wrong);
  munmap (next, sizeof *next);
  if (wrong->len > 0)
    MUSTER_FAIL ("%s", wrong->str);
}

/* Calls every function in a way. */
static void
call_all (MisuseWay way, guint most)
{
  g_autoptr (GArray) cases = g_array_new (FALSE, FALSE, sizeof (MisuseCase));
  way.but = -1;
  for (gsize i = 0; i < G_N_ELEMENTS (misuse_functions); i++) {
    const MisuseCase it = {&misuse_functions[i], way};
    if (can_be_made (it.function, &way))
      g_array_append_val (cases, it);
  }
  run_cases (cases, most);
}

MUSTER_TEST (misuse, null_for_every_pointer_is_refused)
{
  call_all ((MisuseWay){.given = GIVE_NOTHING}, G_MAXUINT);
}

MUSTER_TEST (misuse, null_for_every_pointer_is_refused_whatever_the_numbers_say)
{
  call_all ((MisuseWay){.given = GIVE_NOTHING, .number = -1, .count = -1}, G_MAXUINT);
}

MUSTER_TEST (misuse, nobody_needs_to_take_the_error)
{
  call_all ((MisuseWay){.given = GIVE_NOTHING, .without_error = TRUE}, G_MAXUINT);
}

MUSTER_TEST (misuse, null_beside_a_valid_object_is_refused)
{
  call_all ((MisuseWay){.given = GIVE_FIRST}, 1);
}

MUSTER_TEST (misuse, a_single_null_is_refused)
{
  g_autoptr (GArray) cases = g_array_new (FALSE, FALSE, sizeof (MisuseCase));
  for (gsize i = 0; i < G_N_ELEMENTS (misuse_functions); i++)
    for (guint j = 0; j < misuse_functions[i].n_parameters; j++) {
      const MisuseCase it = {&misuse_functions[i],
                             {.given = GIVE_ALL_REQUIRED, .but = (int)j, .count = 1}};
      const MisuseParameter *parameter = &it.function->parameters[j];
      if (parameter->is_pointer && !parameter->is_nullable && can_be_made (it.function, &it.way))
        g_array_append_val (cases, it);
    }
  run_cases (cases, 1);
}

MUSTER_TEST (misuse, null_is_taken_where_it_may_be)
{
  call_all ((MisuseWay){.given = GIVE_ALL_REQUIRED, .count = 1}, 1);
}

MUSTER_TEST (misuse, numbers_below_0_are_no_crash)
{
  call_all ((MisuseWay){.given = GIVE_ALL, .number = -1, .count = 1}, 1);
}
