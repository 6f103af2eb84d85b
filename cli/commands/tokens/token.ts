/** `token …`: making and reading tokens (cli/README.md); what changes them is in `token-change.ts`. */
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { command, type Group, type Leaf } from '../../command/command.ts'
import {
  connect,
  pageFlags,
  pageQuery,
  pageSchema,
  recordFlags,
  recordSchema,
  showPage,
  showRecord,
} from '../../command/record.ts'
import { type Input, processInput } from '../../terminal/input.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { clone, emergencyRevoke, revoke, rotate, update } from './token-change.ts'
import { madeSchema, showMade, tokenIdArgument, tokenPath } from './token-record.ts'
import { given, readRoles, readScope, repeatableScopeFlags, roleFlag, scopeFlags } from './token-scope.ts'

const purposes = ['general', 'gateway-runtime', 'integration'] as const
const keyClasses = ['durable', 'virtual', 'disposable'] as const
const columnsOfList = ['id', 'name', 'purpose', 'status', 'token_prefix', 'expires_at']

export const token = (terminal: Terminal, input: Input = processInput): Group => ({
  about: 'Make, look at, change and revoke API tokens',
  commands: {
    create: async () => create(terminal),
    list: async () => list(terminal),
    get: async () => get(terminal),
    update: async () => update(terminal),
    rotate: async () => rotate(terminal),
    clone: async () => clone(terminal),
    delete: async () => revoke(terminal),
    'emergency-revoke': async () => emergencyRevoke(terminal),
    alerts: async () => alerts(terminal),
    views: async () => views(terminal),
    validate: async () => validate(terminal, input),
  },
})

const create = (terminal: Terminal): Leaf =>
  command({
    about: 'Make a token; its secret is shown this once',
    args: {
      name: { type: 'string', required: true, description: 'What to recognise it by' },
      purpose: { type: 'string', required: true, description: 'What it is for', valueHint: purposes.join('|') },
      'key-class': { type: 'string', description: 'How it is meant to be used', valueHint: keyClasses.join('|') },
      ...roleFlag,
      ...scopeFlags,
      ...recordFlags,
    },
    repeatable: [...repeatableScopeFlags, 'role'],
    async run(flags) {
      const body = given({
        name: flags.name,
        purpose: purposeInApi(flags.purpose),
        key_class: flags['key-class'] && oneOf(keyClasses, '--key-class', flags['key-class']),
        roles: readRoles(flags.role),
        ...readScope(flags),
      })
      const request = { method: 'POST', path: '/v1/tokens', body } as const
      await showMade(await connect(flags, terminal).json(request, madeSchema), flags.json, terminal)
    },
  })

const list = (terminal: Terminal): Leaf =>
  command({
    about: 'List tokens, newest first',
    args: {
      name: { type: 'string', description: 'Only tokens with this in their name' },
      purpose: { type: 'string', description: 'Only tokens for this', valueHint: purposes.join('|') },
      status: { type: 'string', description: 'Only tokens in this state, for example active' },
      'key-class': { type: 'string', description: 'Only tokens of this class', valueHint: keyClasses.join('|') },
      'team-id': { type: 'string', description: 'Only tokens of this team', valueHint: 'UUID' },
      'gateway-id': { type: 'string', description: 'Only tokens bound to this gateway', valueHint: 'UUID' },
      ...pageFlags,
      ...recordFlags,
    },
    async run(flags) {
      const { name, status, json } = flags
      const purpose = flags.purpose && purposeInApi(flags.purpose)
      const key_class = flags['key-class'] && oneOf(keyClasses, '--key-class', flags['key-class'])
      const ids = { team_id: flags['team-id'], gateway_id: flags['gateway-id'] }
      const query = { name, purpose, status, key_class, ...ids, ...pageQuery(flags) }
      const page = await connect(flags, terminal).json({ path: '/v1/tokens', query }, pageSchema)
      await showPage(page, { of: 'tokens', fields: columnsOfList, json, terminal })
    },
  })

const get = (terminal: Terminal): Leaf =>
  command({
    about: 'Show one token, without its secret',
    args: { ...tokenIdArgument, ...recordFlags },
    async run(flags) {
      const record = await connect(flags, terminal).json({ path: tokenPath(flags.token_id) }, recordSchema)
      await showRecord(record, flags.json, terminal)
    },
  })

const alerts = (terminal: Terminal): Leaf =>
  command({
    about:
      'List tokens to look at: nearly or wholly used up, expiring, expired, due for rotation, revoked in emergency',
    args: { ...pageFlags, ...recordFlags },
    async run(flags) {
      const { json } = flags
      const request = { path: '/v1/tokens/alerts', query: pageQuery(flags) }
      const page = await connect(flags, terminal).json(request, pageSchema)
      await showPage(page, { of: 'alerts', fields: ['condition', 'at', 'token_id', 'name'], json, terminal })
    },
  })

const viewsSchema = z.looseObject({ total: z.number() })

const views = (terminal: Terminal): Leaf =>
  command({
    about: 'Count tokens by status, purpose, key class and team',
    args: recordFlags,
    async run(flags) {
      const counted = await connect(flags, terminal).json({ path: '/v1/tokens/views' }, viewsSchema)
      await showRecord(counted, flags.json, terminal)
    },
  })

const validationSchema = z.looseObject({ valid: z.boolean(), token_id: z.string().optional() })

const validate = (terminal: Terminal, input: Input): Leaf =>
  command({
    about: 'Say whether the secret on stdin is one of a usable token; fails where it is not',
    args: recordFlags,
    async run(flags) {
      if (input.interactive) terminal.note('The secret (it is not shown):')
      const body = { token: (await input.hiddenLine()).trim() }
      const request = { method: 'POST', path: '/v1/tokens/validate', body } as const
      const answer = await connect(flags, terminal).json(request, validationSchema)
      await showRecord(answer, flags.json, terminal)
      if (!answer.valid) throw new Failure('token_not_active', { message: 'The secret is not one of a usable token' })
    },
  })

const purposeInApi = (purpose: string): string => oneOf(purposes, '--purpose', purpose).replaceAll('-', '_')

function oneOf(known: readonly string[], flag: string, value: string): string {
  if (known.includes(value)) return value
  throw new Failure('usage', { message: `${flag} is one of ${known.join(', ')}` })
}
