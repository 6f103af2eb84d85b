/** `budget create|list|get|update|delete`. */
import { Failure } from '../../../src/failure.ts'
import { command, type Group, type Leaf } from '../../command/command.ts'
import { recordFlags, sendRecord } from '../../command/record.ts'
import {
  deleteOf,
  getOf,
  idArgument,
  listOf,
  type Resource,
  recordPath,
  requireChange,
} from '../../command/resource.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { readAmount } from '../tokens/token-scope.ts'

const budgets: Resource = {
  one: 'budget',
  of: 'budgets',
  path: '/v1/budgets',
  fields: ['id', 'name', 'max_budget', 'window', 'scope'],
}

export const budget = (terminal: Terminal): Group => ({
  about: 'Bound what a team, a person, the organization or chosen tokens may spend in a day, a week, a month or in all',
  commands: {
    create: async () => create(terminal),
    list: async () => listOf(budgets, terminal),
    get: async () => getOf(budgets, terminal),
    update: async () => update(terminal),
    delete: async () => deleteOf(budgets, 'Delete a budget that no token in force names', terminal),
  },
})

const amount = { type: 'string', description: 'The most that may be spent in a window', valueHint: 'USD' } as const

const create = (terminal: Terminal): Leaf =>
  command({
    about: 'Make a budget; without --team-id, --user-id or --bound it holds for the organization',
    args: {
      name: { type: 'string', required: true, description: 'What it is called' },
      'max-budget': { ...amount, required: true },
      window: { type: 'string', default: 'month', description: 'day, week, month or total' },
      'team-id': { type: 'string', description: 'The team whose spend it bounds', valueHint: 'UUID' },
      'user-id': { type: 'string', description: 'The person whose spend it bounds', valueHint: 'UUID' },
      bound: { type: 'boolean', description: 'It bounds the tokens whose budget_id names it' },
      ...recordFlags,
    },
    async run(flags) {
      const { name, window } = flags
      const max_budget = readAmount('--max-budget', flags['max-budget'])
      const body = { name, max_budget, window, scope: scopeOf(flags) }
      await sendRecord({ method: 'POST', path: budgets.path, body }, flags, terminal)
    },
  })

interface ScopeFlags {
  readonly 'team-id': string | undefined
  readonly 'user-id': string | undefined
  readonly bound: boolean | undefined
}

function scopeOf({ 'team-id': team, 'user-id': user, bound }: ScopeFlags): Record<string, string> {
  const scopes = [
    ...(team === undefined ? [] : [{ kind: 'team', id: team }]),
    ...(user === undefined ? [] : [{ kind: 'user', id: user }]),
    ...(bound ? [{ kind: 'token' }] : []),
  ]
  if (scopes.length > 1) throw new Failure('usage', { message: 'Give one of --team-id, --user-id and --bound' })
  return scopes[0] ?? { kind: 'organization' }
}

const update = (terminal: Terminal): Leaf =>
  command({
    about: 'Change the name or the amount of a budget',
    args: {
      ...idArgument,
      name: { type: 'string', description: 'What it is called' },
      'max-budget': amount,
      ...recordFlags,
    },
    async run(flags) {
      const text = flags['max-budget']
      const max_budget = text === undefined ? undefined : readAmount('--max-budget', text)
      const body = { name: flags.name, max_budget }
      requireChange(body)
      await sendRecord({ method: 'PATCH', path: recordPath(budgets, flags.id), body }, flags, terminal)
    },
  })
