/** A policy as the API shows it: the state's row with the name that the ledger keeps. */
import { z } from 'zod'
import { Failure } from '../failure.ts'
import { policyStages } from '../languages/families.ts'
import { timestamp } from '../lib/clock.ts'
import type { Database } from '../store/open.ts'
import {
  brokenChoices,
  openPolicy,
  policyColumns,
  policyModes,
  type StoredPolicy,
  targetsSchema,
} from './stored-policy.ts'

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

/** What the ledger knows of a policy. */
interface PolicyName {
  id: string
  name: string
  created_at: number
  created_by: string
}

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
  created_at: timestamp(known.created_at),
  created_by: known.created_by,
})

const columns = policyColumns.join(', ')
const configSchema = z.record(z.string(), z.unknown())

interface Databases {
  state: Database
  ledger: Database
}

/** All policies in the order of the chain, those that are not enabled included. */
export async function readPolicies({ state }: Pick<Databases, 'state'>): Promise<StoredPolicy[]> {
  const rows = await state.read(`select ${columns} from policies where deleted = 0 order by position, id`)
  return rows.map(openPolicy)
}

/** A page of them after the policy of this id. */
export async function readPolicyPage(
  { state, ledger }: Databases,
  { after, limit }: { after: string | null; limit: number },
): Promise<NamedPolicy[]> {
  const rows = await state.read(
    `select ${columns} from policies where deleted = 0
      and (? is null or (position, id) > (select position, id from policies where id = ?))
      order by position, id limit ?`,
    [after, after, limit],
  )
  return await withNames(ledger, rows.map(openPolicy))
}

/** The policy of this id. Throws `not_found`. */
export async function requirePolicy({ state, ledger }: Databases, id: string): Promise<NamedPolicy> {
  const [row] = await state.read(`select ${columns} from policies where id = ? and deleted = 0`, [id])
  const [named] = row === undefined ? [] : await withNames(ledger, [openPolicy(row)])
  if (named === undefined) throw new Failure('not_found', { message: 'There is no such policy' })
  return named
}

/** A policy that another control plane is making right now has no name yet: it goes by its id until it has. */
async function withNames(ledger: Database, policies: readonly StoredPolicy[]): Promise<NamedPolicy[]> {
  const names = await ledger.read<PolicyName>(
    'select id, name, created_at, created_by from policies where id in (select value from json_each(?))',
    [JSON.stringify(policies.map(({ id }) => id))],
  )
  const byId = new Map(names.map((name) => [name.id, name]))
  return policies.map((stored) => ({
    stored,
    known: byId.get(stored.id) ?? { id: stored.id, name: stored.id, created_at: 0, created_by: 'unknown' },
  }))
}
