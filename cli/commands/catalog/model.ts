/** `model list|get|price|create|update|delete`: what the catalog lists. */
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { isUuid } from '../../../src/lib/ids.ts'
import type { Api } from '../../command/api.ts'
import { command, type Group, type Leaf } from '../../command/command.ts'
import { connect, recordFlags, recordSchema, showRecord } from '../../command/record.ts'
import {
  clearedFields,
  clearFlag,
  deleteOf,
  getOf,
  idArgument,
  linesOf,
  listOf,
  numberOf,
  priceOf,
  type Resource,
  recordPath,
  requireChange,
} from '../../command/resource.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const model: Resource = {
  one: 'model',
  of: 'models',
  path: '/v1/catalog/models',
  fields: ['id', 'provider_id', 'upstream_model', 'max_output_tokens', 'fallbacks'],
}

const clearable = ['upstream_model', 'families', 'price', 'max_output_tokens', 'fallbacks']

const fieldFlags = {
  'upstream-model': { type: 'string', description: "The provider's name for it" },
  family: { type: 'string', description: 'A family it serves (repeatable; default all)', valueHint: 'chat|…' },
  price: { type: 'string', description: 'Dollars a million tokens', valueHint: 'JSON' },
  'max-output-tokens': { type: 'string', description: 'The most it writes', valueHint: 'N' },
  fallback: { type: 'string', description: 'A model that is tried after it, in order (repeatable)', valueHint: 'ID' },
} as const

const repeatable = ['family', 'fallback', 'clear']

export const modelCommands = (terminal: Terminal): Group => ({
  about: 'Say which provider answers for a model, and what is tried after it',
  commands: {
    list: async () => listOf(model, terminal),
    get: async () => getOf(model, terminal),
    price: async () => price(terminal),
    create: async () => create(terminal),
    update: async () => update(terminal),
    delete: async () => deleteOf(model, 'Take a model that no other falls back to out of the catalog', terminal),
  },
})

const price = (terminal: Terminal): Leaf =>
  command({
    about: 'Say what a model costs and who says so, listed or not',
    args: { ...idArgument, ...recordFlags },
    async run(flags) {
      const found = await connect(flags, terminal).json(
        { path: `${recordPath(model, flags.id)}/price` },
        z.looseObject({}),
      )
      await showRecord(found, flags.json, terminal)
    },
  })

const create = (terminal: Terminal): Leaf =>
  command({
    about: 'List a model in the catalog',
    args: {
      id: { type: 'positional', description: 'What callers ask for; it may hold slashes' },
      provider: { type: 'string', required: true, description: 'Who answers for it', valueHint: 'NAME|UUID' },
      ...fieldFlags,
      ...recordFlags,
    },
    repeatable,
    async run(flags) {
      const api = connect(flags, terminal)
      const body = { id: flags.id, provider_id: await providerId(api, flags.provider), ...fieldsOf(flags) }
      const made = await api.json({ method: 'POST', path: model.path, body }, recordSchema)
      await showRecord(made, flags.json, terminal)
    },
  })

const update = (terminal: Terminal): Leaf =>
  command({
    about: 'Change a model',
    args: {
      ...idArgument,
      provider: { type: 'string', description: 'Who answers for it', valueHint: 'NAME|UUID' },
      ...fieldFlags,
      ...clearFlag,
      ...recordFlags,
    },
    repeatable,
    async run(flags) {
      const api = connect(flags, terminal)
      const { provider } = flags
      const body = {
        provider_id: provider === undefined ? undefined : await providerId(api, provider),
        ...fieldsOf(flags),
        ...clearedFields(flags.clear, clearable),
      }
      requireChange(body)
      const changed = await api.json({ method: 'PATCH', path: recordPath(model, flags.id), body }, recordSchema)
      await showRecord(changed, flags.json, terminal)
    },
  })

type FieldFlags = { [Name in keyof typeof fieldFlags]?: string | undefined }

const fieldsOf = (flags: FieldFlags) => ({
  upstream_model: flags['upstream-model'],
  families: linesOf(flags.family),
  price: priceOf(flags.price, '--price'),
  max_output_tokens: numberOf(flags['max-output-tokens'], '--max-output-tokens'),
  fallbacks: linesOf(flags.fallback),
})

const providerPage = z.object({
  providers: z.array(z.object({ id: z.string(), name: z.string() })),
  next_cursor: z.string().nullable(),
})

/** The id of the provider that a person named. Throws `usage` where there is none. */
async function providerId(api: Api, named: string): Promise<string> {
  if (isUuid(named)) return named
  let cursor: string | undefined
  do {
    const page = await api.json({ path: '/v1/catalog/providers', query: { cursor } }, providerPage)
    const found = page.providers.find(({ name }) => name === named)
    if (found !== undefined) return found.id
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  throw new Failure('usage', { message: 'There is no provider of this name: provider list shows those there are' })
}
