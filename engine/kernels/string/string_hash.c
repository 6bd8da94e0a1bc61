// SPDX-License-Identifier: Apache-2.0
/* Strings to buckets, by the hashes that TensorFlow uses, so that a model trained there finds its
 * buckets here. */
#include "engine/kernels/common/dispatch.h"
#include "engine/kernels/string/string_op_tables.h"
#include "engine/resources/hashes.h"

typedef enum { FARM, MURMUR, SIP } Hash;

static gboolean
read_key (MusterKernel *k, guint64 key[2], GError **error)
{
  const Tensorflow__AttrValue *value = muster_kernel_attr (k, "key");
  if (value == NULL || value->value_case != TENSORFLOW__ATTR_VALUE__VALUE_LIST ||
      value->list == NULL || value->list->n_i != 2)
    return muster_invalid (error, "Key must have 2 elements");
  key[0] = (guint64)value->list->i[0];
  key[1] = (guint64)value->list->i[1];
  return TRUE;
}

static gboolean
hash_all (MusterKernel *k, Hash hash, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *out;
  gint64 n_buckets = muster_kernel_attr_int (k, "num_buckets", 0);
  guint64 key[2] = {0};
  if (n_buckets < 1)
    return muster_invalid (
        error, "Value for attr 'num_buckets' of %" G_GINT64_FORMAT " must be at least minimum 1",
        n_buckets);
  if (hash == SIP && !read_key (k, key, error))
    return FALSE;
  out = muster_kernel_output (k, 0, muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  if (out == NULL)
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++) {
    MusterString string = muster_tensor_string (x, i);
    const guint8 *s = (const guint8 *)string.data;
    guint64 value = hash == FARM     ? muster_farm_hash (s, string.size)
                    : hash == MURMUR ? muster_murmur_hash (s, string.size)
                                     : muster_sip_hash (key, s, string.size);
    ((gint64 *)muster_tensor_data_mutable (out))[i] = (gint64)(value % (guint64)n_buckets);
  }
  return TRUE;
}

static gboolean
compute_fast (MusterKernel *k, GError **error)
{
  return hash_all (k, FARM, error);
}

static gboolean
compute_first (MusterKernel *k, GError **error)
{
  return hash_all (k, MURMUR, error);
}

static gboolean
compute_strong (MusterKernel *k, GError **error)
{
  return hash_all (k, SIP, error);
}

const MusterOp muster_string_hash_ops[] = {
    {"StringToHashBucketFast", "input:string -> output:int64", "num_buckets", compute_fast, 0},
    {"StringToHashBucket", "string_tensor:string -> output:int64", "num_buckets", compute_first, 0},
    {"StringToHashBucketStrong", "input:string -> output:int64", "num_buckets key", compute_strong,
     0},
    {NULL, NULL, NULL, NULL, 0},
};
