/**
 * What a gateway is called, for people: the ledger keeps the name, and `state` a digest of it, by which no two gateways
 * take one name at the same time (fleet/README.md, Trust: `state` holds no name).
 */

import type { Database } from '../open.ts'
import { insertRow, updateRow } from '../rows.ts'
import type { Statement } from '../statement.ts'
import { gatewayNames } from './ledger.ts'

const digestMark = 'sha256:'

/** What `state.gateways.name` holds. */
export const nameDigest = (name: string): string =>
  digestMark + new Bun.CryptoHasher('sha256').update(name).digest('base64url')

export const keepName = (id: string, name: string): Statement => insertRow(gatewayNames, { id, name })

export const changeName = (id: string, name: string): Statement => updateRow(gatewayNames, id, { name })

export const dropName = (id: string): Statement => ({ sql: 'delete from gateway_names where id = ?', args: [id] })

/** The names of these gateways; one that has none goes by its id. */
export async function readNames(ledger: Database, ids: readonly string[]): Promise<(id: string) => string> {
  const rows = await ledger.read<{ id: string; name: string }>(
    'select id, name from gateway_names where id in (select value from json_each(?))',
    [JSON.stringify(ids)],
  )
  const names = new Map(rows.map(({ id, name }) => [id, name]))
  return (id) => names.get(id) ?? id
}

/** Takes the names that former versions wrote into `state` to the ledger. No version is raised: nothing is decided by them. */
export async function moveNames({ state, ledger }: { state: Database; ledger: Database }): Promise<void> {
  const rows = await state.read<{ id: string; name: string }>(`select id, name from gateways where name not like ?`, [
    `${digestMark}%`,
  ])
  for (const { id, name } of rows) {
    await ledger.write([{ sql: 'insert or ignore into gateway_names (id, name) values (?, ?)', args: [id, name] }])
    await state.write([
      { sql: 'update gateways set name = ? where id = ? and name = ?', args: [nameDigest(name), id, name] },
    ])
  }
}
