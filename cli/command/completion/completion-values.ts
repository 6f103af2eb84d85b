/**
 * The values that completion offers for an argument: choices, names of records as the control plane lists them, pages of
 * the handbook. A control plane that does not answer at once, or refuses, is passed over in silence.
 *
 * A record is offered by its id where its name is that of another too, or has characters that a shell would read and
 * that nobody quotes.
 */
import type { ArgDef } from 'citty'
import { printable } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { createApi } from '../api.ts'
import { type ConnectionFlags, findConnection } from '../profile.ts'
import { idIs, isInUse, namedRecords, namesOf } from '../record-names.ts'

const plain = /^[\w.@/:+-]+$/

/** A person waits for it. */
const patienceMilliseconds = 1500

/** Where records are listed, by the command about them. */
const listOfCommand: Readonly<Record<string, string>> = {
  ...{ gateway: '/v1/gateways', token: '/v1/tokens', team: '/v1/teams', user: '/v1/users', policy: '/v1/policies' },
  ...{ provider: '/v1/catalog/providers', model: '/v1/catalog/models', 'mcp-server': '/v1/catalog/mcp-servers' },
  ...{ budget: '/v1/budgets', 'consumer-group': '/v1/consumer-groups', 'access-policy': '/v1/access-policies' },
  dimension: '/v1/attribution-dimensions',
  ...{ 'identity-provider': '/v1/identity-providers', 'oauth-client': '/v1/oauth/clients' },
  ...{ 'workload-identity': '/v1/workload-identities', 'managed-settings': '/v1/catalog/managed-settings' },
  ...{ escalation: '/v1/escalations', 'scim-token': '/v1/scim-tokens' },
}

export interface Place {
  /** The words of the command. */
  path: readonly string[]
  /** Of the flag or the positional argument. */
  name: string
  definition: ArgDef | undefined
  /** The flags that stand before it. */
  flags: Readonly<Record<string, string>>
  terminal: Terminal
  /** Whether names with characters that a shell would read can be offered, because they will be quoted. */
  isAnyName: boolean
}

export async function valuesOf(place: Place): Promise<(readonly [value: string, about: string])[]> {
  const { path, name, definition } = place
  if (definition?.type === 'enum') return (definition.options ?? []).map((option) => [String(option), ''])
  if (path[0] === 'help') {
    const { handbookPages } = await import('../../../src/handbook/pages.ts')
    return (await handbookPages()).map((page) => [page.path, page.title])
  }
  if (path[0] === 'connect' && name === 'client') {
    const { recipes } = await import('../../../src/clients/index.ts')
    return recipes.map((recipe) => [recipe.name, recipe.title])
  }
  const list = definition?.type === 'positional' ? listOfPositional(path, name) : listOfFlag(name)
  return list === undefined ? [] : await recordsAt(list, place)
}

const listOfPositional = ([command = '']: readonly string[], name: string): string | undefined =>
  name === 'id' ? listOfCommand[command] : listOfFlag(name.replaceAll('_', '-'))

/** `--team-id`, `--team`, or a model that is tried after another. */
const listOfFlag = (name: string): string | undefined =>
  listOfCommand[name === 'fallback' ? 'model' : name.replace(/-id$/, '')]

async function recordsAt(list: string, { flags, terminal, isAnyName }: Place): Promise<(readonly [string, string])[]> {
  const { 'api-url': apiUrl, config, profile, region } = flags
  const connectionFlags: ConnectionFlags = { 'api-url': apiUrl, config, profile, region }
  const signal = AbortSignal.timeout(patienceMilliseconds)
  const patiently = Object.assign(
    (input: string | URL | Request, init?: RequestInit) => fetch(input, { ...init, signal }),
    { preconnect: fetch.preconnect },
  )
  try {
    const api = createApi(findConnection(connectionFlags, terminal), patiently)
    const records = (await namedRecords(list, '', api)).filter(isInUse)
    const names = records.map((record) => namesOf(record)[0] ?? '')
    return records.map((record, index) => {
      const name = names[index] ?? ''
      const isClear = (isAnyName ? name !== '' : plain.test(name)) && names.indexOf(name) === names.lastIndexOf(name)
      return [isClear ? name : idIs(record), printable(isClear ? (record.status ?? '') : name)]
    })
  } catch {
    // Nothing can be said while a line is typed.
    return []
  }
}
