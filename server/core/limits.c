// SPDX-License-Identifier: Apache-2.0
/* The server's limits and their use: a counter or a measurement for each. muster_limits_take ()
 * checks before anything is added; refusals are logged. */
#include "server/core/limits.h"

#include "base/log_private.h"
#include "base/memory_account_private.h"
#include "rpc/server/open_files_private.h"

#include <sys/resource.h>

#define DEFAULT_SPARE_FILES 64
#define OPEN_FILES_FOLDER   "/proc/self/fd"

static const struct {
  const char *name;
  const char *words; /* for messages */
  const char *raise; /* how to raise it */
  guint64 usual;
} about[MUSTER_N_LIMITS] = {
    [MUSTER_LIMIT_SESSIONS] = {"sessions", "sessions", "--max-sessions", 20000},
    [MUSTER_LIMIT_GRAPH_BYTES] = {"graph_bytes", "bytes of a graph", "--max-graph-bytes", 1 << 30},
    [MUSTER_LIMIT_STEPS] = {"steps", "concurrent steps", "--max-steps", 1000},
    [MUSTER_LIMIT_WATCHERS] = {"watchers", "watchers", "--max-watchers", 50000},
    [MUSTER_LIMIT_REQUEST_BYTES] = {"request_bytes", "bytes of a request", "--max-request-bytes",
                                    G_MAXINT32},
    [MUSTER_LIMIT_OPEN_FILES] = {"open_files", "open files",
                                 "the limit of the process (ulimit -n, LimitNOFILE=)", 0},
    [MUSTER_LIMIT_STREAMS] = {"streams", "calls of a connection", "--max-steps", 0},
    [MUSTER_LIMIT_MEMORY] = {"memory", "memory", "--max-memory", 0},
};

typedef struct {
  guint64 max;
  guint64 used;    /* atomic */
  guint64 refused; /* atomic */
  MusterLogLimit messages;
  void (*measure) (MusterLimitUse *usage,
                   gpointer data); /* (nullable) measures instead of counting */
  gpointer data;
} State;

struct _MusterLimits {
  State states[MUSTER_N_LIMITS];
  guint spare_files;
};

MusterLimits *
muster_limits_new (const MusterServerLimits *limits)
{
  MusterLimits *self = g_new0 (MusterLimits, 1);
  const guint64 wanted[MUSTER_N_LIMITS] = {
      [MUSTER_LIMIT_SESSIONS] = limits->sessions,
      [MUSTER_LIMIT_GRAPH_BYTES] = limits->graph_bytes,
      [MUSTER_LIMIT_STEPS] = limits->steps,
      [MUSTER_LIMIT_WATCHERS] = limits->watchers,
      [MUSTER_LIMIT_REQUEST_BYTES] = limits->request_bytes,
  };
  for (guint i = 0; i < MUSTER_N_LIMITS; i++)
    self->states[i].max = wanted[i] != 0 ? wanted[i] : about[i].usual;
  if (limits->memory_bytes != 0)
    muster_memory_set_limit (limits->memory_bytes);
  self->spare_files = limits->spare_files != 0 ? limits->spare_files : DEFAULT_SPARE_FILES;
  return self;
}

void
muster_limits_free (MusterLimits *self)
{
  g_free (self);
}

static void
log_refusal (MusterLimits *self, MusterLimit limit, const char *detail)
{
  char left_out[MUSTER_LOG_COUNT_SIZE];
  if (!muster_log_bounded (G_LOG_LEVEL_MESSAGE, &self->states[limit].messages, left_out))
    return;
  muster_log (G_LOG_LEVEL_MESSAGE, "limit", "MUSTER_LIMIT", about[limit].name, "MUSTER_MAX",
              MUSTER_LOG_INT (muster_limits_max (self, limit)), "MUSTER_LEFT_OUT", left_out,
              "MESSAGE", "refused a client: the limit of %s is reached%s; raise it with %s",
              about[limit].words, detail, about[limit].raise);
}

static gboolean
refuse (MusterLimits *self, MusterLimit limit, const char *detail, GError **error)
{
  __atomic_fetch_add (&self->states[limit].refused, 1, __ATOMIC_RELAXED);
  log_refusal (self, limit, detail);
  return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "over the limit of %s (%" G_GUINT64_FORMAT "%s); raise it with %s",
                      about[limit].words, muster_limits_max (self, limit), detail,
                      about[limit].raise);
}

static gboolean
has_files (MusterLimits *self, GError **error)
{
  if (muster_open_files_left (self->spare_files))
    return TRUE;
  g_autofree char *detail = g_strdup_printf (", of which %u are reserved", self->spare_files);
  return refuse (self, MUSTER_LIMIT_OPEN_FILES, detail, error);
}

gboolean
muster_limits_take (MusterLimits *self, MusterLimit limit, GError **error)
{
  if (limit != MUSTER_LIMIT_STEPS && !has_files (self, error))
    return FALSE;
  State *state = &self->states[limit];
  if (__atomic_add_fetch (&state->used, 1, __ATOMIC_RELAXED) <= state->max)
    return TRUE;
  muster_limits_release (self, limit);
  return refuse (self, limit, "", error);
}

void
muster_limits_release (MusterLimits *self, MusterLimit limit)
{
  __atomic_fetch_sub (&self->states[limit].used, 1, __ATOMIC_RELAXED);
}

gboolean
muster_limits_allow (MusterLimits *self, MusterLimit limit, guint64 n_bytes, GError **error)
{
  State *state = &self->states[limit];
  if (n_bytes > state->max) {
    g_autofree char *detail = g_strdup_printf ("; requested: %" G_GUINT64_FORMAT, n_bytes);
    return refuse (self, limit, detail, error);
  }
  guint64 largest = __atomic_load_n (&state->used, __ATOMIC_RELAXED);
  while (n_bytes > largest && !__atomic_compare_exchange_n (&state->used, &largest, n_bytes, TRUE,
                                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
  return TRUE;
}

/* Returns the process's current limit of open files, which the operator may raise at any time.
 * */
static guint64
max_open_files (void)
{
  struct rlimit limit;
  return getrlimit (RLIMIT_NOFILE, &limit) == 0 ? (guint64)limit.rlim_cur : G_MAXINT;
}

static guint64
count_open_files (void)
{
  g_autoptr (GDir) folder = g_dir_open (OPEN_FILES_FOLDER, 0, NULL);
  guint64 n = 0;
  while (folder != NULL && g_dir_read_name (folder) != NULL)
    n++;
  return n > 0 ? n - 1 : 0; /* one entry is the opened folder itself */
}

void
muster_limits_measure (MusterLimits *self, MusterLimit limit,
                       void (*measure) (MusterLimitUse *usage, gpointer data), gpointer data)
{
  self->states[limit].measure = measure;
  self->states[limit].data = data;
}

guint64
muster_limits_max (MusterLimits *self, MusterLimit limit)
{
  if (limit == MUSTER_LIMIT_OPEN_FILES)
    return max_open_files ();
  return limit == MUSTER_LIMIT_MEMORY ? muster_memory_limit () : self->states[limit].max;
}

void
muster_limits_read (MusterLimits *self, MusterLimit limit, MusterLimitUse *usage)
{
  State *state = &self->states[limit];
  *usage = (MusterLimitUse){
      .name = about[limit].name,
      .used = __atomic_load_n (&state->used, __ATOMIC_RELAXED),
      .max = muster_limits_max (self, limit),
      .refused = __atomic_load_n (&state->refused, __ATOMIC_RELAXED),
  };
  if (limit == MUSTER_LIMIT_OPEN_FILES)
    usage->used = count_open_files ();
  if (limit == MUSTER_LIMIT_MEMORY) {
    usage->used = muster_memory_used_in_all ();
    usage->refused = muster_memory_n_refused ();
  }
  if (state->measure != NULL)
    state->measure (usage, state->data);
}
