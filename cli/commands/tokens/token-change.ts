/** `token update|rotate|clone|emergency-revoke`: what changes a token or makes one from another. */
import { defineCommand } from 'citty'
import { Failure } from '../../../src/failure.ts'
import { connect, recordFlags, sendRecord } from '../../command/record.ts'
import { idArgument } from '../../command/resource-commands.ts'
import { readCount, readDuration } from '../../command/values.ts'
import { confirm } from '../../terminal/confirm.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { madeSchema, showMade, tokenPath } from './token-record.ts'
import { given, readRoles, readScope, roleFlag, scopeFlags, scopeReferences } from './token-scope.ts'

const nameFlag = { name: { type: 'string', description: 'Its name' } } as const
const yesFlag = { yes: { type: 'boolean', description: 'Confirm: this cannot be undone' } } as const

export const update = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Rename or narrow a token; what was narrowed is not widened again' },
    args: {
      ...idArgument,
      ...nameFlag,
      ...roleFlag,
      ...scopeFlags,
      'if-version': { type: 'string', description: 'Only if the record still has this version', valueHint: 'N' },
      ...recordFlags,
    },
    async run({ args }) {
      const body = given({ name: args.name, roles: readRoles(args.role), ...readScope(args) })
      if (Object.keys(body).length === 0) {
        throw new Failure('usage', {
          message: 'Name at least one field to change, for example --name or --max-requests',
        })
      }
      const version = args['if-version']
      const headers = version === undefined ? {} : { 'if-match': `"${readCount('--if-version', version)}"` }
      await sendRecord(
        { method: 'PATCH', path: tokenPath(args.id), body, headers, references: scopeReferences },
        args,
        terminal,
      )
    },
  })

export const rotate = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Replace a token by a new one of the same profile; its secret is shown this once' },
    args: {
      ...idArgument,
      grace: { type: 'string', description: 'How long the old one still works, at most 24h', valueHint: '12h' },
      yes: { type: 'boolean', description: 'End the old one at once, where there is no --grace' },
      ...recordFlags,
    },
    async run({ args }) {
      if (args.grace === undefined) {
        await confirm(args.yes, `Without --grace the old secret of ${args.id} stops working at once`, terminal)
      }
      const body = args.grace === undefined ? {} : { grace_period_seconds: readDuration('--grace', args.grace) }
      const request = { method: 'POST', path: tokenPath(args.id, '/rotate'), body } as const
      await showMade(await connect(args, terminal).json(request, madeSchema), args.json, terminal)
    },
  })

export const clone = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Create a token of equal or narrower scope; its secret is shown this once' },
    args: {
      ...idArgument,
      ...nameFlag,
      ...scopeFlags,
      reason: { type: 'string', description: 'Why, for the record' },
      ...recordFlags,
    },
    async run({ args }) {
      const body = given({ name: args.name, reason: args.reason, ...readScope(args) })
      const request = { method: 'POST', path: tokenPath(args.id, '/clone'), body, references: scopeReferences } as const
      await showMade(await connect(args, terminal).json(request, madeSchema), args.json, terminal)
    },
  })

export const emergencyRevoke = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Revoke a token at once and record why' },
    args: {
      ...idArgument,
      explanation: { type: 'string', required: true, description: 'Why, for the record' },
      'revoke-active-sessions': { type: 'boolean', description: 'Also end its running requests and connections' },
      ...yesFlag,
      ...recordFlags,
    },
    async run({ args }) {
      await confirm(args.yes, `This revokes ${args.id}, which cannot be undone`, terminal)
      const body = given({
        explanation: args.explanation,
        revoke_active_sessions: args['revoke-active-sessions'] || undefined,
      })
      await sendRecord({ method: 'POST', path: tokenPath(args.id, '/emergency-revoke'), body }, args, terminal)
    },
  })

export const revoke = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Revoke a token' },
    args: { ...idArgument, ...yesFlag, ...recordFlags },
    async run({ args }) {
      await confirm(args.yes, `This revokes ${args.id}, which cannot be undone`, terminal)
      await sendRecord({ method: 'DELETE', path: tokenPath(args.id) }, args, terminal)
    },
  })
