/**
 * The runtime token that `up` hands to its gateway over a channel of their own: read where the ledger keeps it, sealed.
 */
import { Database } from 'bun:sqlite'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { unseal } from '../../src/lib/seal.ts'

export function runtimeTokenOf({ dataDirectory }: { dataDirectory: string }): string {
  const masterKey = Buffer.from(readFileSync(join(dataDirectory, 'master-key'), 'utf8').trim(), 'base64')
  using ledger = new Database(join(dataDirectory, 'ledger.db'), { readonly: true })
  const name = 'runtime-token'
  const kept = ledger.query<{ sealed: string }, [string]>('select sealed from secrets where name = ?').get(name)
  return unseal(masterKey, kept?.sealed ?? '', name)
}
