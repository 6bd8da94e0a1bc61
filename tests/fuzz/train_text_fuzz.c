// SPDX-License-Identifier: Apache-2.0
/* The small files and texts that a training task reads: job.muster, a backup's metadata, TF_CONFIG
 * and NumPy arrays; the first byte picks. */
#include "base/crc32c_private.h"
#include "base/error.h"
#include "callbacks/backup_files_private.h"
#include "cli/commands/train_role.h"
#include "graph/npy.h"
#include "jobs/job_metadata.h"
#include "tests/doubles/memory_storage.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { JOB_STATE, BACKUP, SUMMED_BACKUP, TF_CONFIG, NPY, N_KINDS };

/* Messages go to terminals and to bindings, which take text alone. */
static void
check_message (const GError *error)
{
  g_assert_true (error == NULL || g_utf8_validate (error->message, -1, NULL));
}

/* --- job.muster --- */

static gboolean
read_state (MusterStorage *storage, gint64 *epoch, gboolean *finished, GError **error)
{
  static const char *const nodes[] = {"trainer", NULL};
  g_autoptr (MusterJobStateFile) file = muster_job_state_file_new ();
  MusterJobMetadata *metadata = MUSTER_JOB_METADATA (file);
  const MusterJobParams params = {.directory = "d", .storage = storage, .nodes = nodes};
  const gboolean is_set = muster_job_metadata_set_params (metadata, &params, NULL);
  g_assert_true (is_set);
  return muster_job_metadata_last_epoch (metadata, MUSTER_NO_EPOCH, epoch, finished,
                                         MUSTER_WAIT_FOREVER, NULL, error) &&
         (*epoch == MUSTER_NO_EPOCH ||
          muster_job_metadata_write (metadata, *epoch, *finished, MUSTER_WAIT_FOREVER, NULL,
                                     error));
}

static void
try_job_state (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMemoryStorage) memory = memory_storage_new ();
  gint64 epoch = 0, again = 0;
  gboolean finished = FALSE, finished_again = FALSE;
  memory_storage_put (memory, "d/" MUSTER_JOB_STATE_NAME, data, size);
  const gboolean is_good = read_state (MUSTER_STORAGE (memory), &epoch, &finished, &error);
  g_assert_true (is_good == (error == NULL));
  check_message (error);
  if (!is_good)
    return;
  g_assert_cmpint (epoch, >=, 0);
  (void)read_state (MUSTER_STORAGE (memory), &again, &finished_again, &error);
  g_assert_no_error (error);
  g_assert_cmpint (again, ==, epoch);
  g_assert_cmpint (finished_again, ==, finished);
}

/* --- training_metadata.json --- */

static void
try_backup (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static (data, size);
  MusterBackupMetadata metadata = {0}, again = {0};
  const gboolean is_good = muster_backup_metadata_parse ("f", bytes, &metadata, &error);
  g_assert_true (is_good == (error == NULL));
  if (!is_good)
    return;
  g_autofree char *printed = muster_backup_metadata_print (&metadata);
  g_autoptr (GBytes) text = g_bytes_new_static (printed, strlen (printed));
  (void)muster_backup_metadata_parse ("f", text, &again, &error);
  g_assert_no_error (error);
  g_assert_cmpmem (&again, sizeof again, &metadata, sizeof metadata);
}

/* Numbers that any checksum is right for: what lies behind it is met. */
static void
try_summed_backup (const guint8 *data, gsize size)
{
  MusterBackupMetadata metadata = {0};
  memcpy (&metadata, data, MIN (size, sizeof metadata));
  g_autofree char *text = muster_backup_metadata_print (&metadata);
  try_backup ((const guint8 *)text, strlen (text));
}

/* --- TF_CONFIG --- */

static void
try_config (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = g_strndup ((const char *)data, size);
  g_auto (MusterTrainRole) role = {0};
  g_autoptr (MusterClusterSpec) cluster = muster_cluster_spec_new (text, &error);
  const gboolean is_good =
      cluster != NULL && muster_train_role_read (&role, NULL, 0, NULL, cluster, &error);
  g_assert_true (is_good == (error == NULL));
  check_message (error);
  if (!is_good)
    return;
  g_assert_cmpuint (role.index, <, role.n_tasks);
  g_assert_true (role.is_worker == (role.index > 0));
  g_assert_nonnull (role.task);
}

/* --- .npy --- */

static void
try_npy (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static (data, size);
  g_autoptr (MusterTensor) tensor = muster_npy_read (bytes, &error);
  g_assert_true ((tensor == NULL) == (error != NULL));
  check_message (error);
  if (tensor == NULL)
    return;
  const gsize n = muster_tensor_n_bytes (tensor);
  g_autofree guint8 *copy = g_memdup2 (muster_tensor_data (tensor), n); /* every element is there */
  g_assert_true (copy != NULL || n == 0);
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  if (size == 0)
    return 0;
  switch (data[0] % N_KINDS) {
  case JOB_STATE:
    try_job_state (data + 1, size - 1);
    break;
  case BACKUP:
    try_backup (data + 1, size - 1);
    break;
  case SUMMED_BACKUP:
    try_summed_backup (data + 1, size - 1);
    break;
  case TF_CONFIG:
    try_config (data + 1, size - 1);
    break;
  default:
    try_npy (data + 1, size - 1);
  }
  return 0;
}

/* --- seeds --- */

static void
seed_text (guint8 kind, const char *text)
{
  muster_fuzz_seed (&kind, text, strlen (text));
}

static void
seed_npy (guint8 version, const char *header, gsize n_bytes)
{
  const guint8 kind = NPY, zeros[64] = {0};
  const gsize length = strlen (header);
  const guint8 start[] = {0x93, 'N', 'U', 'M', 'P', 'Y', version, 0, (guint8)length, 0, 0, 0};
  g_autoptr (GByteArray) file = g_byte_array_new ();
  g_byte_array_append (file, start, version == 1 ? 10 : 12);
  g_byte_array_append (file, (const guint8 *)header, (guint)length);
  g_byte_array_append (file, zeros, (guint)n_bytes);
  muster_fuzz_seed (&kind, file->data, file->len);
}

void
muster_fuzz_seeds (void)
{
  const MusterBackupMetadata metadata = {
      .epoch = 3, .batch = 7, .after_batch = 1, .variables = 2, .run = 5};
  const guint8 kind = SUMMED_BACKUP;
  g_autofree char *backup = muster_backup_metadata_print (&metadata);
  seed_text (BACKUP, backup);
  muster_fuzz_seed (&kind, &metadata, sizeof metadata);
  seed_text (JOB_STATE, "[job]\nversion=1\nepoch=3\nfinished=true\nnodes=trainer;reader;\n");
  seed_text (JOB_STATE, "# left\n[job]\nepoch=0\nversion=2\n");
  seed_text (TF_CONFIG, "{\"cluster\": {\"chief\": [\"a:1\"], \"worker\": [\"b:1\", \"c:1\"], "
                        "\"ps\": [\"d:1\"]}, \"task\": {\"type\": \"worker\", \"index\": \"1\"}}");
  seed_text (TF_CONFIG, "{\"session_master\": \"unix://x\", \"cluster\": {\"master\": [\"a\"]}, "
                        "\"task\": {\"type\": \"chief\", \"index\": 0}}");
  seed_npy (1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n", 48);
  seed_npy (2, "{'descr': '|b1', 'fortran_order': False, 'shape': (5,), }\n", 5);
  seed_npy (3, "{'descr': '<c16', 'fortran_order': False, 'shape': (), }\n", 16);
  seed_npy (1, "{'descr': '>i8', 'fortran_order': True, 'shape': (0, 2), }\n", 0);
}
