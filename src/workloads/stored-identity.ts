/** The row of a workload identity: what stands in its JSON columns. */
import { z } from 'zod'
import { keySetSchema } from './issuer-keys.ts'
import { compileClaims, type WorkloadIdentity } from './workload-identity.ts'

/** `until`: milliseconds since the epoch, after which a JWT of this id has ended anyway; null for subjects. */
const revocationsSchema = z.array(
  z.object({ kind: z.enum(['subject', 'jwt_id']), value: z.string(), until: z.number().int().nullable() }),
)
export type Revocation = z.infer<typeof revocationsSchema>[number]

/** `given`: an administrator gave the keys, so they are never read from the issuer. */
const storedKeysSchema = keySetSchema.extend({ given: z.boolean() })
const attributionSchema = z.record(z.string(), z.string())

export const readStoredKeys = (text: string) => storedKeysSchema.parse(JSON.parse(text))
export const readRevocations = (text: string): Revocation[] => revocationsSchema.parse(JSON.parse(text))
export const readAttribution = (text: string) => attributionSchema.parse(JSON.parse(text))

/** A row as gateways read it. */
export interface WorkloadRow {
  id: string
  name: string
  issuer: string
  audience: string
  keys: string
  condition: string | null
  attribution: string
  token_hash: string
  longest_seconds: number
  revoked: string
  enabled: number
}

export const workloadColumns = [
  ...['id', 'name', 'issuer', 'audience', 'keys', 'condition', 'attribution', 'token_hash'],
  ...['longest_seconds', 'revoked', 'enabled'],
]

/** A row as gateways decide by it; null while it is disabled. */
export function compileIdentity(row: WorkloadRow): WorkloadIdentity | null {
  if (row.enabled === 0) return null
  const revocations = readRevocations(row.revoked)
  const valuesOf = (wanted: Revocation['kind']) =>
    new Set(revocations.filter(({ kind }) => kind === wanted).map(({ value }) => value))
  return {
    id: row.id,
    name: row.name,
    issuer: row.issuer,
    audience: row.audience,
    keys: readStoredKeys(row.keys),
    condition: row.condition === null ? null : compileClaims(row.condition),
    attribution: readAttribution(row.attribution),
    tokenHash: row.token_hash,
    longestSeconds: row.longest_seconds,
    revokedSubjects: valuesOf('subject'),
    revokedIds: valuesOf('jwt_id'),
  }
}
