/** A policy as the API shows it: the state's row with the name that the ledger keeps. */
import { and, eq, sql } from 'drizzle-orm'
import { z } from 'zod'
import { Failure } from '../failure.ts'
import { policyStages } from '../languages/families.ts'
import { timestamp } from '../lib/clock.ts'
import type { Database } from '../store/open.ts'
import { isOneOf, query } from '../store/query.ts'
import { policies as ledgerPolicies } from '../store/schema/ledger/policies.ts'
import { policies } from '../store/schema/state/catalog.ts'
import { brokenChoices, openPolicy, policyModes, type StoredPolicy, targetsSchema } from './stored-policy.ts'

export const policyRecordSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  kind: z.string(),
  stages: z.array(z.enum(policyStages)),
  config: z.record(z.string(), z.unknown()),
  when: z.string().nullable(),
  targets: targetsSchema,
  order: z.number().int(),
  mode: z.enum(policyModes),
  when_broken: z.enum(brokenChoices),
  enabled: z.boolean(),
  version: z.number().int().describe('Also the ETag; send it as If-Match'),
  created_at: z.iso.datetime(),
  created_by: z.string(),
})
export type PolicyRecord = z.infer<typeof policyRecordSchema>

/** The ledger's part of a policy. */
type PolicyName = Pick<typeof ledgerPolicies.$inferSelect, 'id' | 'name' | 'createdAt' | 'createdBy'>

export interface NamedPolicy {
  stored: StoredPolicy
  known: PolicyName
}

export const policyRecord = ({ stored, known }: NamedPolicy): PolicyRecord => ({
  id: stored.id,
  name: known.name,
  kind: stored.kind,
  stages: [...stored.stages],
  config: configSchema.parse(stored.config),
  when: stored.when,
  targets: targetsSchema.parse(stored.targets),
  order: stored.position,
  mode: stored.mode,
  when_broken: stored.whenBroken,
  enabled: stored.enabled,
  version: stored.version,
  created_at: timestamp(known.createdAt),
  created_by: known.createdBy,
})

/** By the names that `openPolicy` reads, also for gateways. */
const columns = {
  id: policies.id,
  kind: policies.kind,
  stages: policies.stages,
  config: policies.config,
  condition: policies.condition,
  targets: policies.targets,
  position: policies.position,
  mode: policies.mode,
  when_broken: policies.whenBroken,
  enabled: policies.enabled,
  version: policies.version,
}
const present = eq(policies.deleted, 0)
const configSchema = z.record(z.string(), z.unknown())

interface Databases {
  state: Database
  ledger: Database
}

/** All policies in the order of the chain, disabled ones included. */
export async function readPolicies({ state }: Pick<Databases, 'state'>): Promise<StoredPolicy[]> {
  const { position, id } = policies
  const rows = await query(state).select(columns).from(policies).where(present).orderBy(position, id)
  return rows.map(openPolicy)
}

/** A page of policies after this id. */
export async function readPolicyPage(
  { state, ledger }: Databases,
  { after, limit }: { after: string | null; limit: number },
): Promise<NamedPolicy[]> {
  const { position, id } = policies
  const isAfter =
    after === null ? undefined : sql`(${position}, ${id}) > (select position, id from policies where id = ${after})`
  const rows = await query(state)
    .select(columns)
    .from(policies)
    .where(and(present, isAfter))
    .orderBy(position, id)
    .limit(limit)
  return await withNames(ledger, rows.map(openPolicy))
}

/** The policy of this id. Throws `not_found`. */
export async function requirePolicy({ state, ledger }: Databases, id: string): Promise<NamedPolicy> {
  const row = await query(state)
    .select(columns)
    .from(policies)
    .where(and(eq(policies.id, id), present))
    .get()
  const [named] = row === undefined ? [] : await withNames(ledger, [openPolicy(row)])
  if (named === undefined) throw new Failure('not_found', { message: 'There is no such policy' })
  return named
}

/** A policy that another control plane is creating right now has no name yet: its id is shown until it has one. */
async function withNames(ledger: Database, storedPolicies: readonly StoredPolicy[]): Promise<NamedPolicy[]> {
  const { id, name, createdAt, createdBy } = ledgerPolicies
  const ids = storedPolicies.map((stored) => stored.id)
  const names = await query(ledger)
    .select({ id, name, createdAt, createdBy })
    .from(ledgerPolicies)
    .where(isOneOf(id, ids))
  const byId = new Map(names.map((known) => [known.id, known]))
  return storedPolicies.map((stored) => ({
    stored,
    known: byId.get(stored.id) ?? { id: stored.id, name: stored.id, createdAt: 0, createdBy: 'unknown' },
  }))
}
