// SPDX-License-Identifier: Apache-2.0
#include "bundle/leveldb_table.h"

#include "base/error.h"

#include <cstring>
#include <exception>
#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>
#include <leveldb/table_builder.h>
#include <memory>

namespace
{

class BytesFile : public leveldb::RandomAccessFile
{
public:
  BytesFile (const char *data, gsize size) : data_ (data), size_ (size)
  {
  }

  leveldb::Status
  Read (uint64_t offset, size_t n, leveldb::Slice *result, char *) const override
  {
    if (offset > size_ || n > size_ - offset)
      return leveldb::Status::Corruption ("a block lies outside the file");
    *result = leveldb::Slice (data_ + offset, n);
    return leveldb::Status::OK ();
  }

private:
  const char *data_;
  gsize size_;
};

class ArrayFile : public leveldb::WritableFile
{
public:
  explicit ArrayFile (GByteArray *array) : array_ (array)
  {
  }

  leveldb::Status
  Append (const leveldb::Slice &data) override
  {
    if (data.size () > G_MAXUINT - array_->len)
      return leveldb::Status::IOError ("the index is larger than 4 GiB");
    g_byte_array_append (array_, reinterpret_cast<const guint8 *> (data.data ()),
                         static_cast<guint> (data.size ()));
    return leveldb::Status::OK ();
  }
  leveldb::Status
  Close () override
  {
    return leveldb::Status::OK ();
  }
  leveldb::Status
  Flush () override
  {
    return leveldb::Status::OK ();
  }
  leveldb::Status
  Sync () override
  {
    return leveldb::Status::OK ();
  }

private:
  GByteArray *array_;
};

gboolean
fail (GError **error, const char *why)
{
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS, "not a sound table: %s", why);
  return FALSE;
}

const guint8 *
bytes_of (const leveldb::Slice &slice)
{
  return reinterpret_cast<const guint8 *> (slice.data ());
}

gboolean
walk (const char *data, gsize size, MusterTableFunc func, gpointer user_data, GError **error)
{
  const BytesFile file (data, size);
  leveldb::Options options;
  options.paranoid_checks = true;
  leveldb::ReadOptions reading;
  reading.verify_checksums = true;
  reading.fill_cache = false;

  leveldb::Table *opened = nullptr;
  const leveldb::Status status =
      leveldb::Table::Open (options, const_cast<BytesFile *> (&file), size, &opened);
  const std::unique_ptr<leveldb::Table> table (opened);
  if (!status.ok ())
    return fail (error, status.ToString ().c_str ());
  const std::unique_ptr<leveldb::Iterator> entry (table->NewIterator (reading));
  for (entry->SeekToFirst (); entry->Valid (); entry->Next ())
    if (!func (bytes_of (entry->key ()), entry->key ().size (), bytes_of (entry->value ()),
               entry->value ().size (), user_data, error))
      return FALSE;
  return entry->status ().ok () || fail (error, entry->status ().ToString ().c_str ());
}

} // namespace

gboolean
muster_table_foreach (GBytes *table, MusterTableFunc func, gpointer user_data, const char **flaw,
                      GError **error)
{
  gsize size;
  const void *data = g_bytes_get_data (table, &size);
  if (!muster_table_check (static_cast<const guint8 *> (data), size, flaw, error))
    return FALSE;
  try {
    return walk (static_cast<const char *> (data), size, func, user_data, error);
  } catch (const std::exception &e) {
    return fail (error, e.what ());
  }
}

/* The options and the file outlive the builder, which keeps pointers to both. */
struct _MusterTableBuilder {
  GByteArray *array;
  leveldb::Options options;
  std::unique_ptr<ArrayFile> file;
  std::unique_ptr<leveldb::TableBuilder> builder;
  bool is_finished;
};

MusterTableBuilder *
muster_table_builder_new (void)
{
  auto *self = new MusterTableBuilder ();
  self->array = g_byte_array_new ();
  self->options.compression = leveldb::kNoCompression;
  self->file = std::make_unique<ArrayFile> (self->array);
  self->builder = std::make_unique<leveldb::TableBuilder> (self->options, self->file.get ());
  self->is_finished = false;
  return self;
}

void
muster_table_builder_add (MusterTableBuilder *self, const guint8 *key, gsize key_size,
                          const guint8 *value, gsize value_size)
{
  g_return_if_fail (!self->is_finished);
  self->builder->Add (leveldb::Slice (reinterpret_cast<const char *> (key), key_size),
                      leveldb::Slice (reinterpret_cast<const char *> (value), value_size));
}

GBytes *
muster_table_builder_finish (MusterTableBuilder *self, GError **error)
{
  g_return_val_if_fail (!self->is_finished, NULL);
  self->is_finished = true;
  const leveldb::Status status = self->builder->Finish ();
  if (!status.ok ()) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "could not build the index: %s", status.ToString ().c_str ());
    return NULL;
  }
  return g_byte_array_free_to_bytes (g_steal_pointer (&self->array));
}

void
muster_table_builder_free (MusterTableBuilder *self)
{
  if (self == nullptr)
    return;
  if (!self->is_finished)
    self->builder->Abandon ();
  self->builder.reset ();
  if (self->array != nullptr)
    g_byte_array_unref (self->array);
  delete self;
}
