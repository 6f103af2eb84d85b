/** `token …`: making and reading tokens (cli/README.md); what changes them is in `token-change.ts`. */
import { defineCommand } from 'citty'
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { connect, pageFlags, pageQuery, readPage, recordFlags, showPage, showRecord } from '../../command/record.ts'
import { getOf, listOf } from '../../command/resource-commands.ts'
import { type Input, processInput } from '../../terminal/input.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { clone, emergencyRevoke, revoke, rotate, update } from './token-change.ts'
import { madeSchema, showMade } from './token-record.ts'
import { given, readRoles, readScope, roleFlag, scopeFlags, scopeReferences } from './token-scope.ts'

const purposes = ['general', 'gateway-runtime', 'integration']
const keyClasses = ['durable', 'virtual', 'disposable']
const columnsOfList = ['id', 'name', 'purpose', 'status', 'token_prefix', 'expires_at']

export const token = (terminal: Terminal, input: Input = processInput) =>
  defineCommand({
    meta: { description: 'Create, show, change and revoke API tokens' },
    subCommands: {
      create: async () => create(terminal),
      list: async () => list(terminal),
      get: async () => getOf(tokens, terminal),
      update: async () => update(terminal),
      rotate: async () => rotate(terminal),
      clone: async () => clone(terminal),
      delete: async () => revoke(terminal),
      'emergency-revoke': async () => emergencyRevoke(terminal),
      alerts: async () => listOf(alerts, terminal),
      views: async () => views(terminal),
      validate: async () => validate(terminal, input),
    },
  })

const create = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Create a token; its secret is shown this once' },
    args: {
      name: { type: 'string', required: true, description: 'Its name' },
      purpose: { type: 'enum', options: purposes, required: true, description: 'What it is for' },
      'key-class': { type: 'enum', options: keyClasses, description: 'How it is meant to be used' },
      ...roleFlag,
      ...scopeFlags,
      ...recordFlags,
    },
    async run({ args }) {
      const body = given({
        name: args.name,
        purpose: purposeInApi(args.purpose),
        key_class: args['key-class'],
        roles: readRoles(args.role),
        ...readScope(args),
      })
      const request = { method: 'POST', path: '/v1/tokens', body, references: scopeReferences } as const
      await showMade(await connect(args, terminal).json(request, madeSchema), args.json, terminal)
    },
  })

const list = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'List tokens, newest first' },
    args: {
      name: { type: 'string', description: 'Only tokens with this in their name' },
      purpose: { type: 'enum', options: purposes, description: 'Only tokens for this' },
      status: { type: 'string', description: 'Only tokens in this state, for example active' },
      'key-class': { type: 'enum', options: keyClasses, description: 'Only tokens of this class' },
      'team-id': { type: 'string', description: 'Only tokens of this team', valueHint: 'NAME|UUID' },
      'gateway-id': { type: 'string', description: 'Only tokens bound to this gateway', valueHint: 'NAME|UUID' },
      ...pageFlags,
      ...recordFlags,
    },
    async run({ args }) {
      const { name, status, json } = args
      const purpose = args.purpose && purposeInApi(args.purpose)
      const key_class = args['key-class']
      const ids = { team_id: args['team-id'], gateway_id: args['gateway-id'] }
      const query = { name, purpose, status, key_class, ...ids, ...pageQuery(args) }
      const request = { path: '/v1/tokens', query, references }
      const page = await readPage(connect(args, terminal), request, { of: 'tokens', all: args.all })
      await showPage(page, { of: 'tokens', fields: columnsOfList, json, terminal })
    },
  })

const references = { team_id: '/v1/teams', gateway_id: '/v1/gateways' }

const alerts = {
  path: '/v1/tokens/alerts',
  plural: 'alerts',
  columns: ['condition', 'at', 'token_id', 'name'],
  summaries: { list: 'List tokens that need attention: nearly or fully used, expiring, due for rotation, revoked' },
}

const tokens = { path: '/v1/tokens', summaries: { get: 'Show one token, without its secret' } }

const viewsSchema = z.looseObject({ total: z.number() })

const views = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Count tokens by status, purpose, key class and team' },
    args: recordFlags,
    async run({ args }) {
      const counted = await connect(args, terminal).json({ path: '/v1/tokens/views' }, viewsSchema)
      await showRecord(counted, args.json, terminal)
    },
  })

const validationSchema = z.looseObject({ valid: z.boolean(), token_id: z.string().optional() })

const validate = (terminal: Terminal, input: Input) =>
  defineCommand({
    meta: { description: 'Check whether the secret on stdin belongs to a usable token; fails if not' },
    args: recordFlags,
    async run({ args }) {
      if (input.interactive) terminal.note('The secret (it is not shown):')
      const body = { token: (await input.hiddenLine()).trim() }
      const request = { method: 'POST', path: '/v1/tokens/validate', body } as const
      const answer = await connect(args, terminal).json(request, validationSchema)
      await showRecord(answer, args.json, terminal)
      if (!answer.valid) throw new Failure('token_not_active', { message: 'The secret is not one of a usable token' })
    },
  })

const purposeInApi = (purpose: string): string => purpose.replaceAll('-', '_')
