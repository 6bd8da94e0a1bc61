// SPDX-License-Identifier: Apache-2.0
#include "tests/checkpoint/bundle_fixture.h"

#include "base/error.h"

#include <string.h>

char *
golden (const char *name)
{
  return g_build_filename ("tests/checkpoint/testdata", name, NULL);
}

char *
in_tmpdir (const char *name)
{
  return g_build_filename (muster_test_tmpdir (), name, NULL);
}

static void
set_number (MusterDType dtype, void *data, gint64 k, double value)
{
  switch (dtype) {
  case MUSTER_FLOAT:
    ((float *)data)[k] = (float)value;
    break;
  case MUSTER_DOUBLE:
    ((double *)data)[k] = value;
    break;
  case MUSTER_COMPLEX64:
    ((float *)data)[2 * k] = (float)value;
    ((float *)data)[2 * k + 1] = (float)-value;
    break;
  case MUSTER_COMPLEX128:
    ((double *)data)[2 * k] = value;
    ((double *)data)[2 * k + 1] = -value;
    break;
  case MUSTER_HALF:
    ((guint16 *)data)[k] = muster_half_from_float ((float)value);
    break;
  case MUSTER_BFLOAT16:
    ((guint16 *)data)[k] = muster_bfloat16_from_float ((float)value);
    break;
  default:
    g_assert_not_reached ();
  }
}

static void
set_integer (gsize size, void *data, gint64 k, gint64 value)
{
  memcpy ((guint8 *)data + (gsize)k * size, &value, size); /* little-endian */
}

MusterTensor *
pattern (MusterDType dtype, int n_dims, const gint64 *dims)
{
  MusterTensor *tensor = muster_tensor_new (dtype, n_dims, dims);
  void *data = muster_tensor_data_mutable (tensor);
  const gsize size = muster_dtype_size (dtype);
  for (gint64 k = 0; k < muster_tensor_n_elements (tensor); k++) {
    if (dtype == MUSTER_BOOL)
      ((guint8 *)data)[k] = k % 2 == 1;
    else if (dtype == MUSTER_UINT8 || dtype == MUSTER_UINT16 || dtype == MUSTER_UINT32 ||
             dtype == MUSTER_UINT64)
      set_integer (size, data, k, 3 * k + 1);
    else if (dtype == MUSTER_INT8 || dtype == MUSTER_INT16 || dtype == MUSTER_INT32 ||
             dtype == MUSTER_INT64)
      set_integer (size, data, k, 3 * k - 2);
    else
      set_number (dtype, data, k, (double)(3 * k - 2));
  }
  return tensor;
}

MusterTensor *
counting_int32 (int n_dims, const gint64 *dims, gint32 first)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_INT32, n_dims, dims);
  gint32 *data = muster_tensor_data_mutable (tensor);
  for (gint64 k = 0; k < muster_tensor_n_elements (tensor); k++)
    data[k] = first + (gint32)k;
  return tensor;
}

void
add_tensor (MusterBundleWriter *writer, const char *name, const char *slice, MusterTensor *tensor)
{
  g_autoptr (GError) error = NULL;
  if (slice != NULL)
    muster_bundle_writer_add_slice (writer, name, slice, tensor, &error);
  else
    muster_bundle_writer_add (writer, name, tensor, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_tensor_unref (tensor);
}

gboolean
is_verdict (const GError *error)
{
  return muster_error_is (error, MUSTER_ERROR_DATA_LOSS) ||
         muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED);
}

guint
count_files (void)
{
  g_auto (GStrv) names = muster_storage_list (muster_local_storage (), muster_test_tmpdir (), NULL);
  return g_strv_length (names);
}

void
put_file (const char *name, const void *data, gsize size)
{
  g_autofree char *path = in_tmpdir (name);
  g_autoptr (GError) error = NULL;
  MusterStorageFile *file = muster_storage_create (muster_local_storage (), path, &error);
  g_assert_no_error (error);
  muster_storage_append (muster_local_storage (), file, data, size, &error);
  muster_storage_close (muster_local_storage (), file, NULL);
  g_assert_no_error (error);
}

GBytes *
get_file (const char *path)
{
  g_autoptr (GError) error = NULL;
  char *data = NULL;
  gsize size = 0;
  g_file_get_contents (path, &data, &size, &error);
  g_assert_no_error (error);
  return g_bytes_new_take (data, size);
}

void
copy_golden (const char *prefix)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = golden ("");
  g_auto (GStrv) names = muster_storage_list (muster_local_storage (), directory, &error);
  g_assert_no_error (error);
  for (gsize i = 0; names[i] != NULL; i++) {
    if (!g_str_has_prefix (names[i], prefix))
      continue;
    g_autofree char *path = golden (names[i]);
    g_autoptr (GBytes) bytes = get_file (path);
    put_file (names[i], g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  }
}

static void faulty_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterFaultyStorage, muster_faulty_storage,
                               MUSTER_TYPE_FORWARDING_STORAGE,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      faulty_storage_iface_init))

MusterFaultyStorage *
faulty_storage_new (int fail_at)
{
  MusterFaultyStorage *self = g_object_new (MUSTER_TYPE_FAULTY_STORAGE, NULL);
  self->fail_at = fail_at;
  return self;
}

/* Notes a call; TRUE if it is to fail. */
static gboolean
fails (MusterStorage *storage, const char *verb, const char *path, GError **error)
{
  static GMutex lock;
  MusterFaultyStorage *self = MUSTER_FAULTY_STORAGE (storage);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&lock);
  if (path != NULL) {
    g_autofree char *base = g_path_get_basename (path);
    char *unique = strstr (base, ".tempstate");
    if (unique != NULL)
      strcpy (unique, ".temp");
    g_string_append_printf (self->log, "%s %s; ", verb, base);
  } else {
    g_string_append_printf (self->log, "%s; ", verb);
  }
  self->n_calls++;
  if (self->fail_at == 0 || self->n_calls < self->fail_at ||
      (self->once && self->n_calls > self->fail_at))
    return FALSE;
  g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC, "'%s': the disk is full", verb);
  return TRUE;
}

static MusterStorageFile *
faulty_create (MusterStorage *self, const char *path, GError **error)
{
  return fails (self, "create", path, error)
             ? NULL
             : muster_storage_create (muster_local_storage (), path, error);
}

static gboolean
faulty_reserve (MusterStorage *self, MusterStorageFile *file, guint64 size, GError **error)
{
  const guint64 free_bytes = MUSTER_FAULTY_STORAGE (self)->free_bytes;
  if (free_bytes == 0 || size <= free_bytes)
    return muster_storage_reserve (muster_local_storage (), file, size, error);
  g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC, "reserving failed");
  return FALSE;
}

static gboolean
faulty_free_space (MusterStorage *self, const char *directory G_GNUC_UNUSED, guint64 *bytes,
                   GError **error G_GNUC_UNUSED)
{
  MusterFaultyStorage *faulty = MUSTER_FAULTY_STORAGE (self);
  *bytes = faulty->free_bytes == 0 || faulty->hides_free_space ? G_MAXUINT64 : faulty->free_bytes;
  return TRUE;
}

static gboolean
faulty_append (MusterStorage *self, MusterStorageFile *file, const void *data, gsize size,
               GError **error)
{
  return !fails (self, "append", NULL, error) &&
         muster_storage_append (muster_local_storage (), file, data, size, error);
}

static gboolean
faulty_sync (MusterStorage *self, MusterStorageFile *file, GError **error)
{
  return !fails (self, "sync", NULL, error) &&
         muster_storage_sync (muster_local_storage (), file, error);
}

static gboolean
faulty_close (MusterStorage *self, MusterStorageFile *file, GError **error)
{
  const gboolean is_closed = muster_storage_close (muster_local_storage (), file, error);
  return !fails (self, "close", NULL, is_closed ? error : NULL) && is_closed;
}

static MusterStorageInput *
faulty_open (MusterStorage *self, const char *path, guint64 *size, GError **error)
{
  return fails (self, "read", path, error)
             ? NULL
             : muster_storage_open (muster_local_storage (), path, size, error);
}

static gboolean
faulty_stat (MusterStorage *self, const char *path, MusterStorageInfo *info, GError **error)
{
  return !fails (self, "look", path, error) &&
         muster_storage_stat (muster_local_storage (), path, info, error);
}

static gboolean
faulty_rename (MusterStorage *self, const char *from, const char *to, GError **error)
{
  return !fails (self, "rename to", to, error) &&
         muster_storage_rename (muster_local_storage (), from, to, error);
}

static gboolean
faulty_remove (MusterStorage *self, const char *path, GError **error)
{
  return !fails (self, "remove", path, error) &&
         muster_storage_remove (muster_local_storage (), path, error);
}

static char **
faulty_list (MusterStorage *self, const char *directory, GError **error)
{
  return fails (self, "list", NULL, error)
             ? NULL
             : muster_storage_list (muster_local_storage (), directory, error);
}

static gboolean
faulty_sync_directory (MusterStorage *self, const char *directory, GError **error)
{
  return !fails (self, "sync directory", NULL, error) &&
         muster_storage_sync_directory (muster_local_storage (), directory, error);
}

static gboolean
faulty_make_directory (MusterStorage *self, const char *directory, GError **error)
{
  if (!g_file_test (directory, G_FILE_TEST_IS_DIR) &&
      fails (self, "make directory", directory, error))
    return FALSE;
  return muster_storage_make_directory (muster_local_storage (), directory, error);
}

static void
faulty_storage_iface_init (MusterStorageInterface *iface)
{
  iface->create = faulty_create;
  iface->append = faulty_append;
  iface->reserve = faulty_reserve;
  iface->free_space = faulty_free_space;
  iface->sync = faulty_sync;
  iface->close = faulty_close;
  iface->open = faulty_open;
  iface->stat = faulty_stat;
  iface->rename = faulty_rename;
  iface->remove = faulty_remove;
  iface->list = faulty_list;
  iface->sync_directory = faulty_sync_directory;
  iface->make_directory = faulty_make_directory;
  iface->lock = NULL; /* a store without locks */
}

static void
faulty_storage_finalize (GObject *object)
{
  g_string_free (MUSTER_FAULTY_STORAGE (object)->log, TRUE);
  G_OBJECT_CLASS (muster_faulty_storage_parent_class)->finalize (object);
}

static void
muster_faulty_storage_class_init (MusterFaultyStorageClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = faulty_storage_finalize;
}

static void
muster_faulty_storage_init (MusterFaultyStorage *self)
{
  self->log = g_string_new (NULL);
}
