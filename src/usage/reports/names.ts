/** What teams, tokens, people and gateways are called; one that has no name, or is gone, goes by its id. */
import type { Database } from '../../store/open.ts'
import { isOneOf, query } from '../../store/query.ts'
import { gatewayNames } from '../../store/schema/ledger/fleet.ts'
import { teams, users } from '../../store/schema/ledger/people.ts'
import { tokens } from '../../store/schema/ledger/tokens.ts'
import type { ReportDimension } from './month-report.ts'

export type NamedDimension = Extract<ReportDimension, 'team' | 'token' | 'user' | 'gateway'>
export const namedDimensions: readonly NamedDimension[] = ['team', 'token', 'user', 'gateway']

const tables = { team: teams, token: tokens, user: users, gateway: gatewayNames } as const

/** Who may not read people is told their ids only. */
export interface NameReader {
  ledger: Database
  seesPeople: boolean
}

export async function readRecordNames({ ledger, seesPeople }: NameReader, kind: NamedDimension, ids: Iterable<string>) {
  if (kind === 'user' && !seesPeople) return (id: string): string => id
  const table = tables[kind]
  const rows = await query(ledger)
    .select({ id: table.id, name: table.name })
    .from(table)
    .where(isOneOf(table.id, [...new Set(ids)]))
  const names = new Map(rows.map(({ id, name }) => [id, name]))
  return (id: string): string => names.get(id) ?? id
}
