/** What a backup says of itself: the first file in it. */
import { z } from 'zod'
import { databaseFiles } from './copy-pair.ts'

export const manifestName = 'manifest.json'
export const keysName = 'keys.sealed'

export const manifestSchema = z.object({
  format: z.literal(1),
  /** Of the executable that made it. */
  version: z.string(),
  made_at: z.iso.datetime(),
  /** The fingerprint of the master key that it needs, where that was known. */
  master_key: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  files: z.array(
    z.object({
      name: z.enum([...databaseFiles, keysName]),
      bytes: z.number().int().min(0),
      sha256: z.string().regex(/^[0-9a-f]{64}$/),
    }),
  ),
})
export type Manifest = z.infer<typeof manifestSchema>
