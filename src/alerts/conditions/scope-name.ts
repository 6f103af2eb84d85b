/** What an alert is for, by name, for its notices. */
import { findTeam } from '../../members/teams/stored-team.ts'
import { readNames } from '../../store/schema/gateway-name.ts'
import { findToken } from '../../tokens/stored-token.ts'
import type { AlertDependencies } from '../dependencies.ts'
import type { Alert } from '../stored-alert.ts'

/** ` of the team checkout`; empty for the whole organization. A record that was deleted goes by its id. */
export async function scopePhrase(
  preposition: 'of' | 'for',
  { scope: { kind, id } }: Alert,
  { ledger }: Pick<AlertDependencies, 'ledger'>,
): Promise<string> {
  if (kind === 'organization' || id === null) return ''
  const name =
    kind === 'team'
      ? (await findTeam(ledger, id))?.name
      : kind === 'token'
        ? (await findToken(ledger, id))?.name
        : kind === 'gateway'
          ? (await readNames(ledger, [id]))(id)
          : id
  return ` ${preposition} the ${kind} ${name ?? id}`
}
