/**
 * What a gateway is called, for people: the ledger keeps the name, and `state` a digest of it, by which no two gateways
 * take one name at the same time (fleet/README.md, Trust: `state` holds no name).
 */

import { eq } from 'drizzle-orm'
import type { Reader } from '../open.ts'
import { insert, isOneOf, query, remove, statement, update } from '../query.ts'
import type { Statement } from '../statement.ts'
import { gatewayNames } from './ledger/fleet.ts'

const digestMark = 'sha256:'

/** What `state.gateways.name` holds. */
export const nameDigest = (name: string): string =>
  digestMark + new Bun.CryptoHasher('sha256').update(name).digest('base64url')

export const keepName = (id: string, name: string): Statement => statement(insert(gatewayNames).values({ id, name }))

export const changeName = (id: string, name: string): Statement =>
  statement(update(gatewayNames).set({ name }).where(eq(gatewayNames.id, id)))

export const dropName = (id: string): Statement => statement(remove(gatewayNames).where(eq(gatewayNames.id, id)))

/** The names of these gateways; one that has none goes by its id. */
export async function readNames(ledger: Reader, ids: readonly string[]): Promise<(id: string) => string> {
  const rows = await query(ledger).select().from(gatewayNames).where(isOneOf(gatewayNames.id, ids))
  const names = new Map(rows.map(({ id, name }) => [id, name]))
  return (id) => names.get(id) ?? id
}
