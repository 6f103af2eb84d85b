/**
 * What providers charge beyond the most that a request could cost by their list prices (usage/lease/README.md rule 19).
 *
 * 1. A gateway compares what a provider reports with the bound of the request, and says in the outcome by how much the
 *    bound was exceeded.
 * 2. The ledger keeps the worst excess of each provider and model, in the transaction that books the outcome.
 * 3. The control plane copies it to the state, with an event. Gateways add it to the bounds of later requests.
 *
 * So a limit can be passed by requests that were under way when a worse excess than any before was seen, each by what it
 * was worse. A request that begins later is not admitted unless the limit pays for the excess too.
 */
import { eq } from 'drizzle-orm'
import { z } from 'zod'
import type { Event } from '../events/event.ts'
import { fromNano, toNano } from '../lib/money.ts'
import { insert, newStateVersion, statement, update } from '../store/query.ts'
import { excesses } from '../store/schema/state/limits.ts'
import type { Statement } from '../store/statement.ts'
import { countsMoney } from './account-name.ts'
import { mostHeld } from './lease/lease.ts'

/** Stands for all models of a provider that have no row of their own. */
export const anyModel = '*'

/** Callers may choose the names of models: beyond so many of a provider, the others share a row. */
const mostModels = 100

export const excessDetails = z.object({
  provider_id: z.string().max(64),
  model: z.string().min(1).max(300).describe("The provider's name of the model"),
  excess: z.number().positive().describe('US dollars beyond the most that the request could cost by the list price'),
})
export type ExcessDetails = z.infer<typeof excessDetails>

/** Nano-dollars by which requests to a model of a provider were charged beyond their bound, at most. */
export type Excesses = ReadonlyMap<string, number>

export const noExcesses: Excesses = new Map()

/** The id of a row of `excesses`. Ids of providers hold no slash. */
export const excessId = (providerId: string, model: string): string => `${providerId}/${model}`

export const excessOf = (excesses: Excesses, providerId: string, model: string): number =>
  excesses.size === 0
    ? 0
    : (excesses.get(excessId(providerId, model)) ?? excesses.get(excessId(providerId, anyModel)) ?? 0)

/** What the outcome says where `cost` is more than `bound`, in nano-dollars. */
export const excessSaid = (providerId: string, model: string, excess: number): ExcessDetails => ({
  provider_id: providerId,
  model,
  excess: fromNano(excess),
})

/** Keeps the excesses that outcomes tell of. No excess is larger than what the outcome books, whoever tells of it. */
export function excessStatements(events: readonly Event[], now: number): Statement[] {
  const told = events.flatMap(({ details, settlements = [], event_attribution: { token_id } }) => {
    const said =
      details?.bound_exceeded === undefined ? undefined : excessDetails.safeParse(details.bound_exceeded).data
    const booked = Math.max(0, ...settlements.map(({ account, amount }) => (countsMoney(account) ? amount : 0)))
    const amount = Math.min(toNano(said?.excess ?? 0), booked, mostHeld)
    return said === undefined || amount === 0 ? [] : [{ ...said, amount, token_id }]
  })
  return told.map(({ provider_id, model, amount, token_id }) => ({
    sql: `insert into usage_excesses (provider_id, model, amount, token_id, at)
      values (?1, iif((select count(*) from usage_excesses where provider_id = ?1 and model <> ?2) < ${mostModels}, ?2, '${anyModel}'),
        ?3, ?4, ?5)
      on conflict (provider_id, model) do update set amount = excluded.amount, token_id = excluded.token_id,
        at = excluded.at where excluded.amount > amount`,
    args: [provider_id, model, amount, token_id, now],
  }))
}

export interface UnpublishedExcess {
  provider_id: string
  model: string
  amount: number
  told: number
  token_id: string | null
}

export const unpublishedExcesses = `select provider_id, model, amount, told, token_id from usage_excesses where amount > told`

/** The change of the state that lets gateways know an excess. */
export const publishExcess = ({ provider_id, model, amount }: UnpublishedExcess): Statement => {
  const row = { amount, version: newStateVersion, deleted: 0 }
  return statement(
    insert(excesses)
      .values({ id: excessId(provider_id, model), providerId: provider_id, model, ...row })
      .onConflictDoUpdate({ target: excesses.id, set: row }),
  )
}

/** The ledger's part of the same change; nothing is changed where another control plane was first. */
export const markTold = ({ provider_id, model, amount, told }: UnpublishedExcess): Statement[] => [
  {
    sql: `insert into guards (holds) select 0 where not exists (
      select 1 from usage_excesses where provider_id = ? and model = ? and told = ?)`,
    args: [provider_id, model, told],
  },
  {
    sql: 'update usage_excesses set told = ? where provider_id = ? and model = ?',
    args: [amount, provider_id, model],
  },
]

/** Forgets an excess, in the state and in the ledger. */
export const forgetExcess = (providerId: string, model: string): { state: Statement[]; ledger: Statement[] } => ({
  state: [
    statement(
      update(excesses)
        .set({ deleted: 1, version: newStateVersion })
        .where(eq(excesses.id, excessId(providerId, model))),
    ),
  ],
  ledger: [{ sql: 'delete from usage_excesses where provider_id = ? and model = ?', args: [providerId, model] }],
})
