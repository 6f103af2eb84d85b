/**
 * `provider list|get|create|update|delete`. A credential is read from stdin or from a variable of the environment, never
 * from a flag: others can read a command line.
 */

import { Failure } from '../../../src/failure.ts'
import { providerKinds } from '../../../src/providers/kinds/index.ts'
import { command, type Group, type Leaf } from '../../command/command.ts'
import { fromEnvironment, pairsFromEnvironment } from '../../command/from-environment.ts'
import { recordFlags, sendRecord } from '../../command/record.ts'
import {
  clearedFields,
  clearFlag,
  deleteOf,
  getOf,
  idArgument,
  listOf,
  numberOf,
  priceOf,
  type Resource,
  recordPath,
  requireChange,
} from '../../command/resource.ts'
import { type Input, processInput } from '../../terminal/input.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const provider: Resource = {
  one: 'provider',
  of: 'providers',
  path: '/v1/catalog/providers',
  fields: ['id', 'name', 'kind', 'base_url', 'has_api_key', 'allow_unlisted_models'],
}

const kinds = [...providerKinds.keys()].join('|')
const clearable = ['base_url', 'api_key', 'headers', 'default_price', 'timeouts']

const settingFlags = {
  'base-url': { type: 'string', description: 'Where it is reached', valueHint: 'URL' },
  'api-key-stdin': { type: 'boolean', description: 'Read its API key from stdin, one line' },
  'api-key-env': { type: 'string', description: 'The variable that holds its API key', valueHint: 'NAME' },
  'header-env': {
    type: 'string',
    description: 'A further header and the variable that holds its value (repeatable)',
    valueHint: 'HEADER=NAME',
  },
  'allow-unlisted-models': { type: 'boolean', description: 'It serves models that the catalog does not list' },
  'default-price': { type: 'string', description: 'The price of models that have no other', valueHint: 'JSON' },
  'connect-timeout': { type: 'string', description: 'How long a connection may take', valueHint: 'SECONDS' },
  'first-byte-timeout': { type: 'string', description: 'How long its answer may take to begin', valueHint: 'SECONDS' },
  'idle-timeout': { type: 'string', description: 'How long it may be silent', valueHint: 'SECONDS' },
  'total-timeout': { type: 'string', description: 'How long its answer may take in all', valueHint: 'SECONDS' },
} as const

const repeatable = ['header-env', 'clear']

export const providerCommands = (terminal: Terminal, input: Input = processInput): Group => ({
  about: 'Say who answers, where, and by which credential',
  commands: {
    list: async () => listOf(provider, terminal),
    get: async () => getOf(provider, terminal),
    create: async () => create(terminal, input),
    update: async () => update(terminal, input),
    delete: async () => deleteOf(provider, 'Delete a provider that no model names', terminal),
  },
})

const create = (terminal: Terminal, input: Input): Leaf =>
  command({
    about: 'Add a provider',
    args: {
      name: { type: 'string', required: true, description: 'What bindings name it by' },
      kind: { type: 'string', required: true, description: 'How it is spoken to', valueHint: kinds },
      ...settingFlags,
      ...recordFlags,
    },
    repeatable,
    async run(flags) {
      const body = { name: flags.name, kind: flags.kind, ...(await fieldsOf(flags, terminal, input)) }
      await sendRecord({ method: 'POST', path: provider.path, body }, flags, terminal)
    },
  })

const update = (terminal: Terminal, input: Input): Leaf =>
  command({
    about: 'Change a provider; a new API key reaches every gateway',
    args: {
      ...idArgument,
      name: { type: 'string', description: 'What bindings name it by' },
      ...settingFlags,
      ...clearFlag,
      ...recordFlags,
    },
    repeatable,
    async run(flags) {
      const fields = await fieldsOf(flags, terminal, input)
      const body = { name: flags.name, ...fields, ...clearedFields(flags.clear, clearable) }
      requireChange(body)
      await sendRecord({ method: 'PATCH', path: recordPath(provider, flags.id), body }, flags, terminal)
    },
  })

type Flags = Readonly<Record<string, string | boolean | undefined>>

const text = (value: string | boolean | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined

async function fieldsOf(flags: Flags, terminal: Terminal, input: Input) {
  return {
    base_url: flags['base-url'],
    api_key: await apiKeyOf(flags, terminal, input),
    headers: headersOf(text(flags['header-env']), terminal),
    allow_unlisted_models: flags['allow-unlisted-models'],
    default_price: priceOf(text(flags['default-price']), '--default-price'),
    timeouts: timeoutsOf(flags),
  }
}

async function apiKeyOf(flags: Flags, terminal: Terminal, input: Input): Promise<string | undefined> {
  const variable = text(flags['api-key-env'])
  if (flags['api-key-stdin'] !== true) return variable === undefined ? undefined : fromEnvironment(variable, terminal)
  if (variable !== undefined) {
    throw new Failure('usage', { message: 'Use either --api-key-stdin or --api-key-env' })
  }
  if (input.interactive) terminal.note('API key (it is not shown):')
  return (await input.hiddenLine()).trim()
}

const headersOf = (lines: string | undefined, terminal: Terminal): Record<string, string> | undefined =>
  pairsFromEnvironment(lines, { flag: '--header-env', example: 'X-Org=ORG_HEADER' }, terminal)

function timeoutsOf(flags: Flags) {
  const entries = (['connect', 'first-byte', 'idle', 'total'] as const).flatMap((name) => {
    const seconds = numberOf(text(flags[`${name}-timeout`]), `--${name}-timeout`)
    return seconds === undefined ? [] : [[`${name.replace('-', '_')}_seconds`, seconds] as const]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}
