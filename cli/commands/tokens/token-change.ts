/** `token update|rotate|clone|emergency-revoke`: what changes a token or makes one from another. */
import { Failure } from '../../../src/failure.ts'
import { command, type Leaf } from '../../command/command.ts'
import { readDuration } from '../../command/duration.ts'
import { connect, recordFlags, sendRecord } from '../../command/record.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { madeSchema, requireYes, showMade, tokenIdArgument, tokenPath } from './token-record.ts'
import { given, readCount, readRoles, readScope, repeatableScopeFlags, roleFlag, scopeFlags } from './token-scope.ts'

const nameFlag = { name: { type: 'string', description: 'What to recognise it by' } } as const
const yesFlag = { yes: { type: 'boolean', description: 'Really do it; there is no way back' } } as const

export const update = (terminal: Terminal): Leaf =>
  command({
    about: 'Rename or narrow a token; what was narrowed is not widened again',
    args: {
      ...tokenIdArgument,
      ...nameFlag,
      ...roleFlag,
      ...scopeFlags,
      'if-version': { type: 'string', description: 'Only if the record still has this version', valueHint: 'N' },
      ...recordFlags,
    },
    repeatable: [...repeatableScopeFlags, 'role'],
    async run(flags) {
      const body = given({ name: flags.name, roles: readRoles(flags.role), ...readScope(flags) })
      if (Object.keys(body).length === 0) {
        throw new Failure('usage', { message: 'Say what to change, for example --name or --max-requests' })
      }
      const version = flags['if-version']
      const headers = version === undefined ? {} : { 'if-match': `"${readCount('--if-version', version)}"` }
      await sendRecord({ method: 'PATCH', path: tokenPath(flags.token_id), body, headers }, flags, terminal)
    },
  })

export const rotate = (terminal: Terminal): Leaf =>
  command({
    about: 'Replace a token by a new one of the same profile; its secret is shown this once',
    args: {
      ...tokenIdArgument,
      grace: { type: 'string', description: 'How long the old one still works, at most 24h', valueHint: '12h' },
      yes: { type: 'boolean', description: 'End the old one at once, where there is no --grace' },
      ...recordFlags,
    },
    async run(flags) {
      if (flags.grace === undefined) {
        requireYes(flags.yes, 'Without --grace the old secret stops working at once')
      }
      const body = flags.grace === undefined ? {} : { grace_period_seconds: readDuration('--grace', flags.grace) }
      const request = { method: 'POST', path: tokenPath(flags.token_id, '/rotate'), body } as const
      await showMade(await connect(flags, terminal).json(request, madeSchema), flags.json, terminal)
    },
  })

export const clone = (terminal: Terminal): Leaf =>
  command({
    about: 'Make a token of equal or narrower scope; its secret is shown this once',
    args: {
      ...tokenIdArgument,
      ...nameFlag,
      ...scopeFlags,
      reason: { type: 'string', description: 'Why, for the record' },
      ...recordFlags,
    },
    repeatable: repeatableScopeFlags,
    async run(flags) {
      const body = given({ name: flags.name, reason: flags.reason, ...readScope(flags) })
      const request = { method: 'POST', path: tokenPath(flags.token_id, '/clone'), body } as const
      await showMade(await connect(flags, terminal).json(request, madeSchema), flags.json, terminal)
    },
  })

export const emergencyRevoke = (terminal: Terminal): Leaf =>
  command({
    about: 'Revoke a token at once and record why',
    args: {
      ...tokenIdArgument,
      explanation: { type: 'string', required: true, description: 'Why, for the record' },
      'revoke-active-sessions': { type: 'boolean', description: 'Also end its running requests and connections' },
      ...yesFlag,
      ...recordFlags,
    },
    async run(flags) {
      requireYes(flags.yes, 'Revoking cannot be undone')
      const body = given({
        explanation: flags.explanation,
        revoke_active_sessions: flags['revoke-active-sessions'] || undefined,
      })
      await sendRecord({ method: 'POST', path: tokenPath(flags.token_id, '/emergency-revoke'), body }, flags, terminal)
    },
  })

export const revoke = (terminal: Terminal): Leaf =>
  command({
    about: 'Revoke a token',
    args: { ...tokenIdArgument, ...yesFlag, ...recordFlags },
    async run(flags) {
      requireYes(flags.yes, 'Revoking cannot be undone')
      await sendRecord({ method: 'DELETE', path: tokenPath(flags.token_id) }, flags, terminal)
    },
  })
