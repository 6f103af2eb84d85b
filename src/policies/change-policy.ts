/** Creates, changes, orders and deletes policies: each is one change of the state, with its event. */
import type { SQL } from 'drizzle-orm'
import { and, eq, gt, gte, isNull, ne, not, or, sql } from 'drizzle-orm'
import { controlPlaneEvent } from '../events/control-plane-event.ts'
import type { Event } from '../events/event.ts'
import type { EventType } from '../events/event-types.ts'
import { type Change, changeVersion, type NameClaim, type Recorder } from '../events/recorder.ts'
import { Failure } from '../failure.ts'
import type { Principal } from '../identity/principal.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Database } from '../store/open.ts'
import {
  condition,
  hasRow,
  insert,
  isOneOf,
  newStateVersion,
  query,
  statement,
  subquery,
  update,
} from '../store/query.ts'
import { policies as ledgerPolicies } from '../store/schema/ledger/policies.ts'
import { policies as statePolicies } from '../store/schema/state/catalog.ts'
import { tokens } from '../store/schema/state/tokens.ts'
import type { Statement } from '../store/statement.ts'
import {
  type CreatePolicyBody,
  changedContent,
  checkContent,
  contentOf,
  type PolicyContent,
  type UpdatePolicyBody,
} from './policy-body.ts'
import { type NamedPolicy, readPolicies, requirePolicy } from './policy-record.ts'

export interface PolicyDependencies {
  state: Database
  ledger: Database
  recorder: Recorder
  clock: Clock
  newId: NewId
}

/** The caller, and the request that asks for the change. */
export interface PolicyActor {
  principal: Principal
  requestId: string
}

/** Throws 422 naming an invalid field, `conflict` for a name that is in use. */
export async function createPolicy(
  deps: PolicyDependencies,
  actor: PolicyActor,
  body: CreatePolicyBody,
): Promise<NamedPolicy> {
  const content = contentOf(body)
  checkContent(content)
  const id = deps.newId()
  const last = sql<number>`(select coalesce(max(position), 0) + 1 from policies where deleted = 0)`
  const row = { id, ...columnsOf(content), position: body.order ?? last, version: newStateVersion }
  await change(deps, {
    claim: claimOf(body.name, id),
    event: eventOf(deps, actor, 'policy.created', { policy_id: id, name: body.name, ...detailsOf(content) }),
    state: [...(body.order === undefined ? [] : [makeRoom(body.order)]), statement(insert(statePolicies).values(row))],
    ledger: [
      statement(
        insert(ledgerPolicies).values({
          id,
          name: body.name,
          createdAt: deps.clock.now(),
          createdBy: actor.principal.name,
          version: changeVersion,
        }),
      ),
    ],
  })
  return await requirePolicy(deps, id)
}

/** Throws `version_mismatch` if the policy has changed since `before`. */
export async function updatePolicy(
  deps: PolicyDependencies,
  actor: PolicyActor,
  before: NamedPolicy,
  body: UpdatePolicyBody,
): Promise<NamedPolicy> {
  const { stored, known } = before
  const content = changedContent(stored, body)
  checkContent(content)
  const name = body.name ?? known.name
  const order = body.order ?? stored.position
  const moves = order !== stored.position
  await change(deps, {
    claim: name === known.name ? undefined : claimOf(name, stored.id),
    event: eventOf(deps, actor, 'policy.updated', {
      policy_id: stored.id,
      name,
      changes: {
        ...differences(detailsOf(stored), detailsOf(content)),
        ...differences({ name: known.name, order: stored.position }, { name, order }),
      },
    }),
    guard: condition(unchanged(before)),
    state: [...(moves ? [makeRoom(order)] : []), changed(stored.id, { ...columnsOf(content), position: order })],
    ledger: [renamed(stored.id, { name })],
  })
  return await requirePolicy(deps, stored.id)
}

/** Throws `conflict` while usable tokens name it, `version_mismatch` if it has changed since `before`. */
export async function deletePolicy(deps: PolicyDependencies, actor: PolicyActor, before: NamedPolicy): Promise<void> {
  const { stored, known } = before
  const naming = tokensNaming(stored.id, deps.clock.now())
  await requireUnnamed(deps.state, naming)
  const deletion: Change = {
    event: eventOf(deps, actor, 'policy.deleted', { policy_id: stored.id, name: known.name, ...detailsOf(stored) }),
    guard: condition(and(unchanged(before), not(hasRow(tokens, naming)))),
    state: [changed(stored.id, { deleted: 1 })],
    ledger: [renamed(stored.id, { deletedAt: deps.clock.now() })],
  }
  try {
    await change(deps, deletion)
  } catch (error) {
    if (error instanceof Failure && error.code === 'version_mismatch') await requireUnnamed(deps.state, naming)
    throw error
  }
}

/** Usable tokens that name a policy. */
const tokensNaming = (id: string, now: number): SQL | undefined =>
  and(
    sql`exists (select 1 from json_each(${tokens.policyIds}) where value = ${id})`,
    eq(tokens.deleted, 0),
    isNull(tokens.revokedAt),
    or(isNull(tokens.rotatedAt), gt(tokens.rotatedAt, now)),
    or(isNull(tokens.expiresAt), gt(tokens.expiresAt, now)),
  )

async function requireUnnamed(state: Database, naming: SQL | undefined): Promise<void> {
  const count = await query(state).$count(tokens, naming)
  if (count === 0) return
  const named = count === 1 ? '1 token in force names' : `${count} tokens in force name`
  throw new Failure('conflict', { message: `${named} this policy: revoke them, or disable the policy instead` })
}

/** Puts all policies into this order. Throws `conflict` if the ids are not exactly those of all policies. */
export async function orderPolicies(
  deps: PolicyDependencies,
  actor: PolicyActor,
  ids: readonly string[],
): Promise<void> {
  const present = await readPolicies(deps)
  if (
    new Set(ids).size !== ids.length ||
    ids.length !== present.length ||
    present.some(({ id }) => !ids.includes(id))
  ) {
    const message = 'Name every policy exactly once: read them again and retry'
    throw new Failure('conflict', { message, param: 'policy_ids' })
  }
  const same = present.every(({ id, position }, index) => ids[index] === id && position === index + 1)
  if (same) return
  await change(deps, {
    event: eventOf(deps, actor, 'policy.ordered', { policy_ids: ids }),
    guard: condition(areAll(ids)),
    state: ids.map((id, index) => changed(id, { position: index + 1 })),
    ledger: [],
  })
}

async function change({ recorder }: PolicyDependencies, made: Change): Promise<void> {
  try {
    await recorder.change(made)
  } catch (error) {
    if (error === made.claim?.refusal) throw error
    if (error instanceof Failure && error.code === 'conflict' && made.guard !== undefined) {
      throw new Failure(made.event.event_type === 'policy.ordered' ? 'conflict' : 'version_mismatch', { cause: error })
    }
    throw error
  }
}

const claimOf = (name: string, own: string): NameClaim => ({
  key: `policy ${name}`,
  taken: statement(
    subquery
      .select({ id: ledgerPolicies.id })
      .from(ledgerPolicies)
      .where(and(eq(ledgerPolicies.name, name), isNull(ledgerPolicies.deletedAt), ne(ledgerPolicies.id, own))),
  ),
  refusal: new Failure('conflict', { message: 'There is a policy of this name already', param: 'name' }),
})

const changed = (id: string, columns: Partial<typeof statePolicies.$inferInsert>): Statement =>
  statement(
    update(statePolicies)
      .set({ ...columns, version: newStateVersion })
      .where(eq(statePolicies.id, id)),
  )

const renamed = (id: string, columns: Partial<typeof ledgerPolicies.$inferInsert>): Statement =>
  statement(
    update(ledgerPolicies)
      .set({ ...columns, version: changeVersion })
      .where(eq(ledgerPolicies.id, id)),
  )

const makeRoom = (position: number): Statement =>
  statement(
    update(statePolicies)
      .set({ position: sql`${statePolicies.position} + 1`, version: newStateVersion })
      .where(and(eq(statePolicies.deleted, 0), gte(statePolicies.position, position))),
  )

const unchanged = ({ stored: { id, version } }: NamedPolicy): SQL =>
  hasRow(statePolicies, and(eq(statePolicies.id, id), eq(statePolicies.version, version), eq(statePolicies.deleted, 0)))

/** The condition that these are all existing policies. */
function areAll(ids: readonly string[]): SQL | undefined {
  const { id, deleted } = statePolicies
  const present = (condition: SQL | undefined) =>
    sql`(select count(*) from ${statePolicies} where ${and(eq(deleted, 0), condition)}) = ${ids.length}`
  return and(present(undefined), present(isOneOf(id, ids)))
}

const columnsOf = (content: PolicyContent) => ({
  kind: content.kind,
  stages: JSON.stringify(content.stages),
  config: JSON.stringify(content.config),
  condition: content.when,
  targets: JSON.stringify(content.targets),
  mode: content.mode,
  whenBroken: content.whenBroken,
  enabled: content.enabled ? 1 : 0,
})

const detailsOf = (content: PolicyContent): Record<string, unknown> => ({
  kind: content.kind,
  stages: content.stages,
  config: content.config,
  when: content.when,
  targets: content.targets,
  mode: content.mode,
  when_broken: content.whenBroken,
  enabled: content.enabled,
})

/** Each changed field with its old and new value. */
const differences = (
  before: Record<string, unknown>,
  after: Record<string, unknown>,
): Record<string, { from: unknown; to: unknown }> =>
  Object.fromEntries(
    Object.keys(after)
      .filter((name) => !Bun.deepEquals(before[name], after[name]))
      .map((name) => [name, { from: before[name], to: after[name] }]),
  )

/** Policies belong to no team. */
const eventOf = (
  { clock, newId }: PolicyDependencies,
  { principal, requestId }: PolicyActor,
  type: EventType,
  details: Record<string, unknown>,
): Event => controlPlaneEvent({ type, principal, requestId, teamId: null, details, configVersion: 0, clock, newId })
