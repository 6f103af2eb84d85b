/** Which files a record comes from: `gatehouse apply --label` deletes only what carries its label. */
import { index, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

export const recordLabels = sqliteTable(
  'record_labels',
  {
    /** Of the record's kind: `/v1/teams`. */
    path: text('path').notNull(),
    recordId: text('record_id').notNull(),
    label: text('label').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.path, table.recordId] }),
    index('record_labels_label').on(table.label, table.path, table.recordId),
  ],
)
